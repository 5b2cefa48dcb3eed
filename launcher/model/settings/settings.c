/* SPDX-License-Identifier: Apache-2.0 */
#include "model/settings/settings.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/strv.h"
#include "model/settings/option.h"
#include "model/settings/shown.h"

/*
 * Converts between texts and the values of options. Only the option's type counts, so a value that
 * works as a flag works in INI, YAML and the environment too. Pure.
 */

/* A pointer to the field of an option; option_info(id)->type says which member is the right one. */
union setting_field {
    char *bytes;
    char **text;
    int64_t *number;
    double *real;
    bool *yes;
    int *word;
    struct duration_range *range;
    struct strv *list;
};

#define RANK_MAX 9999999

static bool is_text(enum option_type type)
{
    return type == OPTION_STRING || type == OPTION_TEMPLATE || type == OPTION_RANKS;
}

/* Frees what the field owns. */
static void value_release(enum option_type type, union setting_field field)
{
    if (is_text(type))
        mem_free_at(field.text);
    else if (type == OPTION_LIST)
        strv_destroy(field.list);
}

static int set_text(union setting_field field, const char *text)
{
    mem_replace(field.text, text);
    return 0;
}

/* Every % is followed by one of `letters` or by another %. */
static int check_template(const char *text, const char *letters, struct error *err)
{
    for (const char *at = strchr(text, '%'); at != NULL; at = strchr(at + 2, '%')) {
        if (at[1] == '%' || (at[1] != '\0' && strchr(letters, at[1]) != NULL))
            continue;
        if (at[1] == '\0')
            return error_set(err, "'%s' ends with a single %% (write %%%% for a percent sign)",
                             text);
        return error_set(err, "'%s' has %%%c: expected %% and one of the letters %s, or %%%%", text,
                         at[1], letters);
    }
    return 0;
}

/* "min:max" to two numbers; the table is ours, so it is well formed. */
static void limits_of(const char *accepts, double *min, double *max)
{
    *min = strtod(accepts, NULL);
    *max = strtod(strchr(accepts, ':') + 1, NULL);
}

static int set_int(const char *accepts, const char *text, int64_t *out, struct error *err)
{
    double min = 0, max = 0;
    limits_of(accepts, &min, &max);
    return parse_int(text, (int64_t)min, (int64_t)max, out, err);
}

static int set_double(const char *accepts, const char *text, double *out, struct error *err)
{
    double min = 0, max = 0;
    limits_of(accepts, &min, &max);
    return parse_double(text, min, max, out, err);
}

/* A number, or yes (one more than it was) or no (none). */
static int set_count(const char *accepts, const char *text, int64_t *out, struct error *err)
{
    bool yes = false;
    bool number = text[0] >= '0' && text[0] <= '9';
    if (number)
        return set_int(accepts, text, out, err);
    if (parse_bool(text, &yes, err) < 0)
        return -1;
    *out = yes ? *out + 1 : 0;
    return 0;
}

static int set_tristate(const char *text, int *out, struct error *err)
{
    bool yes = false;
    if (parse_bool(text, &yes, err) < 0)
        return -1;
    *out = yes;
    return 0;
}

/* "MIN MAX", as two words of the command line arrive here; a comma serves as well. */
static int set_range(const char *text, struct duration_range *out, struct error *err)
{
    size_t split = strcspn(text, " ,");
    char *first AUTO_FREE = mem_strndup(text, split);
    const char *second = text + split + strspn(text + split, " ,");
    struct duration_range range = SET_NO_RANGE;
    if (*second == '\0')
        return error_set(err, "'%s' is a single time: expected two, the minimum and the maximum",
                         text);
    if (parse_duration_ms(first, &range.min_ms, err) < 0 ||
        parse_duration_ms(second, &range.max_ms, err) < 0)
        return -1;
    if (range.min_ms > range.max_ms)
        return error_set(err, "'%s': the first time is longer than the second", text);
    *out = range;
    return 0;
}

/* ", a, b or c" for messages. */
static const char *word_list(enum option_id id, struct buf *out)
{
    char word[OPTION_NAME_MAX], after[OPTION_NAME_MAX];
    for (int i = 0; option_word(id, i, word) == 0; i++) {
        bool last = option_word(id, i + 1, after) < 0;
        buf_printf(out, "%s%s", i == 0 ? "" : last ? " or " : ", ", word);
    }
    return buf_text(out);
}

static int set_rank(enum option_id id, const char *text, int64_t *out, struct error *err)
{
    struct buf words AUTO_BUF = BUF_INIT(256);
    int index = option_word_index(id, text);
    if (index >= 0) {
        *out = SET_RANK_ALL - index;
        return 0;
    }
    if (parse_int(text, 0, RANK_MAX, out, NULL) == 0)
        return 0;
    return error_set(err, "'%s' is not a rank: expected a number from 0, %s", text,
                     word_list(id, &words));
}

static int set_word(enum option_id id, const char *text, int *out, struct error *err)
{
    struct buf words AUTO_BUF = BUF_INIT(256);
    int index = option_word_index(id, text);
    if (index < 0)
        return error_set(err, "'%s' is not known: expected %s", text, word_list(id, &words));
    *out = index;
    return 0;
}

static int add_to_list(unsigned flags, const char *text, struct strv *list, struct error *err)
{
    if (*text == '\0')
        return error_set(err, "the value is empty");
    if ((flags & FLAG_COMMA) == 0)
        strv_add(list, text);
    else
        strv_split(list, text, ",");
    return 0;
}

/* Sets the field (frees what it held; a list grows). A bad text changes nothing and fills `err`
 * with the text and what was expected. */
static int value_parse(enum option_id id, union setting_field field, const char *text,
                       struct error *err)
{
    const struct option_info *info = option_info(id);
    switch (info->type) {
    case OPTION_STRING:
        return *text == '\0' ? error_set(err, "the value is empty") : set_text(field, text);
    case OPTION_TEMPLATE:
        return check_template(text, info->accepts, err) < 0 ? -1 : set_text(field, text);
    case OPTION_RANKS: return shown_check(text, RANK_MAX, err) < 0 ? -1 : set_text(field, text);
    case OPTION_INT: return set_int(info->accepts, text, field.number, err);
    case OPTION_DOUBLE: return set_double(info->accepts, text, field.real, err);
    case OPTION_COUNT: return set_count(info->accepts, text, field.number, err);
    case OPTION_BOOL: return parse_bool(text, field.yes, err);
    case OPTION_TRISTATE: return set_tristate(text, field.word, err);
    case OPTION_DURATION: return parse_duration_ms(text, field.number, err);
    case OPTION_RANGE: return set_range(text, field.range, err);
    case OPTION_RANK: return set_rank(id, text, field.number, err);
    case OPTION_ENUM: return set_word(id, text, field.word, err);
    case OPTION_LIST: return add_to_list(info->flags, text, field.list, err);
    }
    return -1;
}

/* The shortest exact form: 90000 is "90", 1500 is "1500ms"; -1: it is unset. */
static int format_duration(int64_t ms, struct buf *out)
{
    if (ms < 0)
        return -1;
    return ms % 1000 == 0 ? buf_printf(out, "%" PRId64, ms / 1000)
                          : buf_printf(out, "%" PRId64 "ms", ms);
}

static int format_number(const struct option_info *info, double value, struct buf *out)
{
    double min = 0, max = 0;
    limits_of(info->accepts, &min, &max);
    return value < min || value > max ? -1 : buf_printf(out, "%.15g", value);
}

static int format_word(enum option_id id, int index, struct buf *out)
{
    char word[OPTION_NAME_MAX];
    return index < 0 || option_word(id, index, word) < 0 ? -1 : buf_puts(out, word);
}

static int format_rank(enum option_id id, int64_t rank, struct buf *out)
{
    return rank >= 0 ? buf_printf(out, "%" PRId64, rank)
                     : format_word(id, (int)(SET_RANK_ALL - rank), out);
}

static int format_list(const struct strv *list, struct buf *out)
{
    for (size_t i = 0; i < list->count; i++)
        buf_printf(out, "%s%s", i == 0 ? "" : ",", list->items[i]);
    return list->count == 0 ? -1 : 0;
}

static int format_times(const struct duration_range *range, struct buf *out)
{
    if (format_duration(range->min_ms, out) < 0)
        return -1;
    buf_putc(out, ' ');
    return format_duration(range->max_ms, out);
}

/* Appends what value_parse() would take; -1 and nothing appended when the field is unset.
 */
static int value_format(enum option_id id, union setting_field field, struct buf *out)
{
    const struct option_info *info = option_info(id);
    switch (info->type) {
    case OPTION_STRING:
    case OPTION_TEMPLATE:
    case OPTION_RANKS: return *field.text == NULL ? -1 : buf_puts(out, *field.text);
    case OPTION_INT:
    case OPTION_COUNT: return format_number(info, (double)*field.number, out);
    case OPTION_DOUBLE: return format_number(info, *field.real, out);
    case OPTION_BOOL: return buf_puts(out, *field.yes ? "yes" : "no");
    case OPTION_TRISTATE:
        return *field.word < 0 ? -1 : buf_puts(out, *field.word != 0 ? "yes" : "no");
    case OPTION_DURATION: return format_duration(*field.number, out);
    case OPTION_RANGE: return format_times(field.range, out);
    case OPTION_RANK: return format_rank(id, *field.number, out);
    case OPTION_ENUM: return format_word(id, *field.word, out);
    case OPTION_LIST: return format_list(field.list, out);
    }
    return -1;
}

/* The settings. */

static const struct settings defaults = {
#define OPTION(name, type, initial, ...) .name = initial,
#include "model/settings/option.def"
};

static const struct {
    size_t offset, size;
} places[OPT_TOTAL] = {
#define OPTION(name, ...) \
    [OPT_##name] = {offsetof(struct settings, name), sizeof(((struct settings *)NULL)->name)},
#include "model/settings/option.def"
};

static union setting_field field_of(const struct settings *settings, enum option_id id)
{
    return (union setting_field){.bytes = (char *)(uintptr_t)settings + places[id].offset};
}

/* Copies the default into a field that owns nothing. */
static void field_init(struct settings *settings, enum option_id id)
{
    union setting_field field = field_of(settings, id);
    memcpy(field.bytes, field_of(&defaults, id).bytes, places[id].size);
    if (is_text(option_info(id)->type))
        *field.text = mem_strdup(*field.text);
}

void settings_init(struct settings *settings)
{
    *settings = (struct settings){.np = 0};
    for (int i = 0; i < OPT_TOTAL; i++)
        field_init(settings, (enum option_id)i);
}

/* Items that have come since the last call are from there. */
static void origin_add_items(struct setting_origin *origin, size_t count,
                             enum setting_source source, const char *place)
{
    origin->items = mem_resize_array(origin->items, count, sizeof(*origin->items));
    for (; origin->count < count; origin->count++)
        origin->items[origin->count] =
            (struct setting_origin){.source = source, .place = mem_strdup(place)};
}

static void origin_clear(struct setting_origin *origin)
{
    for (size_t i = 0; i < origin->count; i++)
        free(origin->items[i].place);
    free(origin->items);
    free(origin->place);
    *origin = (struct setting_origin){.source = SOURCE_DEFAULT};
}

void settings_destroy(struct settings *settings)
{
    for (int i = 0; i < OPT_TOTAL; i++) {
        enum option_id id = (enum option_id)i;
        value_release(option_info(id)->type, field_of(settings, id));
        origin_clear(&settings->origins[id]);
    }
}

void settings_reset(struct settings *settings, enum option_id id)
{
    value_release(option_info(id)->type, field_of(settings, id));
    field_init(settings, id);
    origin_clear(&settings->origins[id]);
}

/* A list or a count starts anew when another source speaks. */
static bool starts_anew(const struct settings *settings, enum option_id id,
                        enum setting_source source)
{
    const struct option_info *info = option_info(id);
    bool gathers = info->type == OPTION_LIST || info->type == OPTION_COUNT;
    return gathers && settings->origins[id].source != source && (info->flags & FLAG_APPEND) == 0;
}

int settings_set(struct settings *settings, enum option_id id, const char *text,
                 enum setting_source source, const char *place, struct error *err)
{
    if (starts_anew(settings, id, source))
        settings_reset(settings, id);
    if (value_parse(id, field_of(settings, id), text, err) < 0)
        return error_wrap(err, "%s", place);
    settings->origins[id].source = source;
    mem_replace(&settings->origins[id].place, place);
    if (option_info(id)->type == OPTION_LIST)
        origin_add_items(&settings->origins[id], field_of(settings, id).list->count, source, place);
    return 0;
}

bool settings_is_set(const struct settings *settings, enum option_id id)
{
    return settings->origins[id].source != SOURCE_DEFAULT;
}

enum setting_source settings_source(const struct settings *settings, enum option_id id)
{
    return settings->origins[id].source;
}

const char *settings_place(const struct settings *settings, enum option_id id)
{
    const char *place = settings->origins[id].place;
    return place == NULL ? "default" : place;
}

const struct setting_origin *settings_item_origin(const struct settings *settings,
                                                  enum option_id id, size_t index)
{
    return &settings->origins[id].items[index];
}

const struct strv *settings_list(const struct settings *settings, enum option_id id)
{
    return field_of(settings, id).list;
}

int settings_format(const struct settings *settings, enum option_id id, struct buf *out)
{
    return value_format(id, field_of(settings, id), out);
}

bool settings_is_elastic(const struct settings *settings)
{
    return settings->host_discovery_script != NULL || settings->hosts_watch != NULL ||
           settings->min_np > 0 || settings->max_np > 0 ||
           settings->on_failure == SET_ON_FAILURE_REJOIN ||
           settings->on_failure == SET_ON_FAILURE_RESTART ||
           settings_is_set(settings, OPT_max_restarts);
}
