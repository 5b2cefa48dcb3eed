/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/describe.h"

#include <string.h>

#include "cli/spelling.h"
#include "model/settings/settings.h"

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
