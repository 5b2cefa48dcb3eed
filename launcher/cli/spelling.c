/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/spelling.h"

#include <string.h>

#include "model/settings/settings.h"
#include "model/settings/suggest.h"

#define NO "--no-"

/* A walk over the spellings, with what all spellings of the current option share. */
struct walk {
    int (*each)(void *context, const struct spelling *spelling);
    void *context;
    struct spelling at;
};

static int walk_word(void *context, const char *word)
{
    struct walk *walk = context;
    walk->at.word = word;
    return walk->each(walk->context, &walk->at);
}

static int walk_option(struct walk *walk, enum option_id id)
{
    const struct option_info *info = option_info(id);
    char word[sizeof(NO) + OPTION_NAME_MAX] = NO, *name = word + strlen(NO);
    walk->at = (struct spelling){.id = id, .takes_value = true};
    walk->at.fixed = option_is_switch(id) ? "yes" : NULL;
    option_name(id, name);
    char *plain = name - 2; /* "--NAME" over the end of "--no-" */
    memset(plain, '-', 2);
    int rc = walk_word(walk, plain);
    if (rc == 0)
        rc = option_each_spelling(id, walk_word, walk);
    if (rc == 0 && (info->flags & FLAG_NO) != 0) {
        walk->at.fixed = "no";
        walk->at.takes_value = false;
        memcpy(word, NO, strlen(NO));
        rc = walk_word(walk, word);
    }
    return rc;
}

int spelling_each(int (*each)(void *context, const struct spelling *spelling), void *context)
{
    struct walk walk = {.each = each, .context = context};
    int rc = 0;
    for (int i = 0; i < OPT_TOTAL && rc == 0; i++)
        rc = walk_option(&walk, (enum option_id)i);
    const struct option_fixed *fixed = option_fixed(0);
    for (size_t i = 0; fixed != NULL && rc == 0; fixed = option_fixed(++i)) {
        walk.at = (struct spelling){
            .id = fixed->id, .fixed = fixed->value, .instead = fixed->instead, .help = fixed->help};
        rc = walk_word(&walk, fixed->spelling);
    }
    return rc;
}

struct spelling_search {
    const char *word;
    size_t length;
    bool with_value, found;
    struct spelling *out;
};

/* The form that fits ends the search. The other form counts only if there is no such form. */
static int search_step(void *context, const struct spelling *spelling)
{
    struct spelling_search *search = context;
    bool same = strlen(spelling->word) == search->length &&
                memcmp(spelling->word, search->word, search->length) == 0;
    if (!same)
        return 0;
    search->found = true;
    *search->out = *spelling;
    search->out->word = NULL;
    return search->with_value ? spelling->takes_value : spelling->fixed != NULL;
}

bool spelling_find(const char *word, size_t length, bool with_value, struct spelling *out)
{
    struct spelling_search search = {word, length, with_value, false, out};
    spelling_each(search_step, &search);
    return search.found;
}

static int offer(void *context, const struct spelling *spelling)
{
    suggest_offer(context, spelling->word);
    return 0;
}

const char *spelling_near(const char *word, size_t length, struct suggest *room)
{
    suggest_init(room, word, length);
    spelling_each(offer, room);
    return suggest_best(room);
}

#define SHORT_MAX 3 /* "-np": help always shows words with one dash up to this length */

struct names {
    struct buf *out;
    bool all, dashes2; /* which kind of spelling this round shows */
    size_t count;
};

static int put_name(void *context, const char *word)
{
    struct names *names = context;
    bool two = word[1] == '-';
    bool habit = !two && strlen(word) > SHORT_MAX;
    if (two != names->dashes2 || (habit && !names->all))
        return 0;
    buf_printf(names->out, "%s%s", names->count++ > 0 ? ", " : "", word);
    return 0;
}

/* Appends " N" or "=KIND". If the bare word has a meaning too, appends "[=WHEN]". */
static void put_arg(enum option_id id, const char *word, struct buf *out)
{
    const struct option_info *info = option_info(id);
    struct spelling bare;
    if (option_is_switch(id))
        return;
    if ((info->flags & FLAG_EQUALS) == 0) {
        buf_printf(out, " %s", info->arg);
        return;
    }
    bool optional = spelling_find(word, strlen(word), false, &bare) && bare.id == id;
    buf_printf(out, optional ? "[=%s]" : "=%s", info->arg);
}

void describe_spellings(enum option_id id, bool all, struct buf *out)
{
    char name[OPTION_NAME_MAX];
    struct names names = {.out = out, .all = all};
    struct buf word AUTO_BUF = BUF_INIT(OPTION_NAME_MAX + 8);
    option_each_spelling(id, put_name, &names);
    buf_printf(&word, "--%s", option_name(id, name));
    if (names.count++ > 0)
        buf_puts(out, ", ");
    if ((option_info(id)->flags & FLAG_NO) != 0)
        buf_printf(out, "--[no-]%s", name);
    else
        buf_puts(out, buf_text(&word));
    names.dashes2 = true;
    option_each_spelling(id, put_name, &names);
    put_arg(id, buf_text(&word), out);
}

void describe_words(enum option_id id, const char *between, struct buf *out)
{
    char word[OPTION_NAME_MAX];
    enum option_type type = option_info(id)->type;
    if (type != OPTION_ENUM && type != OPTION_RANK)
        return;
    for (int i = 0; option_word(id, i, word) == 0; i++)
        buf_printf(out, "%s%s", i == 0 ? "" : between, word);
}

/* The default in readable form ("30 s"). Nothing if the option has none. */
static void put_default(enum option_id id, struct buf *out)
{
    struct settings settings;
    enum option_type type = option_info(id)->type;
    settings_init(&settings);
    size_t before = out->length;
    bool off = type == OPTION_COUNT || (option_info(id)->flags & FLAG_CLI) != 0;
    if (!off)
        settings_format(&settings, id, out);
    if (type == OPTION_DURATION && out->length > before && strstr(buf_text(out), "ms") == NULL)
        buf_puts(out, " s");
    settings_destroy(&settings);
}

/* "auto, local; default auto". Nothing for an option without words and default. */
static void put_values(enum option_id id, struct buf *out)
{
    struct buf text AUTO_BUF = BUF_INIT(256);
    put_default(id, &text);
    bool plain = option_info(id)->type == OPTION_BOOL && strcmp(buf_text(&text), "no") == 0;
    if (option_info(id)->type == OPTION_ENUM)
        describe_words(id, ", ", out);
    if (text.length > 0 && !plain)
        buf_printf(out, "%sdefault %s", out->length > 0 ? "; " : "", buf_text(&text));
}

void describe_help(enum option_id id, struct buf *out)
{
    struct buf values AUTO_BUF = BUF_INIT(256);
    put_values(id, &values);
    buf_puts(out, option_info(id)->help);
    if (values.length > 0)
        buf_printf(out, " (%s)", buf_text(&values));
}
