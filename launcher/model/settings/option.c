/* SPDX-License-Identifier: Apache-2.0 */
#include "model/settings/option.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define VARIABLE_PREFIX "HVDRUN_"

#define WORD_TEXT(id, text) text "|"

static const struct option_info infos[OPT_TOTAL] = {
#define OPTION(name, kind, initial, range, others, value, in_group, bits, key, text) \
    [OPT_##name] = {.field = #name,                                                  \
                    .type = OPTION_##kind,                                           \
                    .accepts = range,                                                \
                    .spellings = others,                                             \
                    .arg = value,                                                    \
                    .group = in_group,                                               \
                    .flags = bits,                                                   \
                    .yaml = key,                                                     \
                    .help = text},
#include "model/settings/option.def"
};

static const struct {
    const char *title, *section;
} groups[GROUP_TOTAL] = {
#define GROUP(id, name, ini) [id] = {name, ini},
#include "model/settings/option.def"
};

static const struct option_fixed fixed[] = {
#define FIXED(name, typed, text, better, about) {OPT_##name, typed, text, better, about},
#include "model/settings/option.def"
};

static const struct option_other_name other_variables[] = {
#define VARIABLE(id, name) {OPT_##id, name, false},
#include "model/settings/option.def"
};

static const struct option_other_name other_yaml[] = {
#define YAML(id, name, upside_down) {OPT_##id, name, upside_down},
#include "model/settings/option.def"
};

static const char *const reserved[] = {
#define RESERVED(name) name,
#include "model/settings/option.def"
};

const struct option_info *option_info(enum option_id id)
{
    return &infos[id];
}

const char *option_group_title(enum option_group group)
{
    return groups[group].title;
}

const char *option_group_section(enum option_group group)
{
    return groups[group].section;
}

/* Before a job starts, its command line and environment ask for every name many times. */
const char *option_name(enum option_id id, char out[OPTION_NAME_MAX])
{
    const char *field = infos[id].field;
    size_t length = 0;
    for (; field[length] != '\0' && length < OPTION_NAME_MAX - 1; length++)
        out[length] = field[length] == '_' ? '-' : field[length];
    if (length > 0 && out[length - 1] == '-')
        length--;
    out[length] = '\0';
    return out;
}

const char *option_variable(enum option_id id, char out[OPTION_NAME_MAX])
{
    char name[OPTION_NAME_MAX];
    option_name(id, name);
    for (char *at = name; *at != '\0'; at++)
        *at = *at == '-' ? '_' : (char)toupper((unsigned char)*at);
    snprintf(out, OPTION_NAME_MAX, VARIABLE_PREFIX "%.*s",
             OPTION_NAME_MAX - (int)sizeof(VARIABLE_PREFIX), name);
    return out;
}

bool option_is_switch(enum option_id id)
{
    enum option_type type = infos[id].type;
    return type == OPTION_BOOL || type == OPTION_TRISTATE || type == OPTION_COUNT;
}

/* Takes the piece of `*list` up to `separator`; NULL at the end. */
static const char *next_piece(const char **list, char separator, size_t *length)
{
    const char *piece = *list;
    if (piece == NULL || *piece == '\0')
        return NULL;
    const char *end = strchr(piece, separator);
    *length = end == NULL ? strlen(piece) : (size_t)(end - piece);
    *list = end == NULL ? piece + *length : end + 1;
    return piece;
}

int option_word(enum option_id id, int index, char out[OPTION_NAME_MAX])
{
    const char *rest = infos[id].accepts, *word;
    size_t length = 0;
    do {
        word = next_piece(&rest, '|', &length);
    } while (word != NULL && index-- > 0);
    if (word == NULL)
        return -1;
    snprintf(out, OPTION_NAME_MAX, "%.*s", (int)length, word);
    return 0;
}

int option_word_index(enum option_id id, const char *word)
{
    char known[OPTION_NAME_MAX];
    for (int i = 0; option_word(id, i, known) == 0; i++) {
        if (strcasecmp(known, word) == 0)
            return i;
    }
    return -1;
}

int option_each_spelling(enum option_id id, int (*each)(void *context, const char *spelling),
                         void *context)
{
    const char *rest = infos[id].spellings;
    size_t length = 0;
    int rc = 0;
    for (const char *piece = next_piece(&rest, ' ', &length); piece != NULL && rc == 0;
         piece = next_piece(&rest, ' ', &length)) {
        char spelling[OPTION_NAME_MAX];
        snprintf(spelling, sizeof(spelling), "%.*s", (int)length, piece);
        rc = each(context, spelling);
    }
    return rc;
}

const struct option_fixed *option_fixed(size_t index)
{
    return index < COUNT_OF(fixed) ? &fixed[index] : NULL;
}

const struct option_other_name *option_other_variable(size_t index)
{
    return index < COUNT_OF(other_variables) ? &other_variables[index] : NULL;
}

const struct option_other_name *option_other_yaml(size_t index)
{
    return index < COUNT_OF(other_yaml) ? &other_yaml[index] : NULL;
}

enum option_id option_of_variable(const char *name, size_t length)
{
    for (size_t i = 0; i < COUNT_OF(other_variables); i++) {
        if (text_is(name, length, other_variables[i].name))
            return other_variables[i].id;
    }
    size_t prefix = strlen(VARIABLE_PREFIX);
    if (length <= prefix || memcmp(name, VARIABLE_PREFIX, prefix) != 0)
        return OPT_TOTAL;
    for (int i = 0; i < OPT_TOTAL; i++) {
        char known[OPTION_NAME_MAX];
        bool hit = text_is(name, length, option_variable((enum option_id)i, known));
        if (hit && (infos[i].flags & FLAG_CLI) == 0)
            return (enum option_id)i;
    }
    return OPT_TOTAL;
}

bool option_variable_is_reserved(const char *name, size_t length)
{
    for (size_t i = 0; i < COUNT_OF(reserved); i++) {
        size_t known = strlen(reserved[i]);
        bool prefix = reserved[i][known - 1] == '*';
        if (prefix && length >= known && memcmp(name, reserved[i], known - 1) == 0)
            return true;
        if (!prefix && text_is(name, length, reserved[i]))
            return true;
    }
    return false;
}
