/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/spelling.h"

#include <string.h>

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
