/* SPDX-License-Identifier: Apache-2.0 */
#include "model/settings/settings.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

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
    enum option_type type = option_info(id)->type;
    union setting_field field = field_of(settings, id);
    memcpy(field.bytes, field_of(&defaults, id).bytes, places[id].size);
    if (type == OPTION_STRING || type == OPTION_TEMPLATE || type == OPTION_RANKS)
        *field.text = mem_strdup(*field.text);
}

void settings_init(struct settings *settings)
{
    *settings = (struct settings){.np = 0};
    for (int i = 0; i < OPT_TOTAL; i++)
        field_init(settings, (enum option_id)i);
}

static void origin_set(struct setting_origin *origin, enum setting_source source, const char *place)
{
    char *copy = mem_strdup(place); /* `place` may be the old one */
    free(origin->place);
    origin->source = source;
    origin->place = copy;
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
        setting_value_release(option_info(id)->type, field_of(settings, id));
        origin_clear(&settings->origins[id]);
    }
}

void settings_reset(struct settings *settings, enum option_id id)
{
    setting_value_release(option_info(id)->type, field_of(settings, id));
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
    if (setting_value_parse(id, field_of(settings, id), text, err) < 0)
        return error_wrap(err, "%s", place);
    origin_set(&settings->origins[id], source, place);
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
    return setting_value_format(id, field_of(settings, id), out);
}

bool settings_is_elastic(const struct settings *settings)
{
    return settings->host_discovery_script != NULL || settings->hosts_watch != NULL ||
           settings->min_np > 0 || settings->max_np > 0 ||
           settings->on_failure == SET_ON_FAILURE_REJOIN ||
           settings->on_failure == SET_ON_FAILURE_RESTART ||
           settings_is_set(settings, OPT_max_restarts);
}
