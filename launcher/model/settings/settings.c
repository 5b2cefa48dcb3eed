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
    *origin = (struct setting_origin){.source = source, .place = copy};
}

void settings_destroy(struct settings *settings)
{
    for (int i = 0; i < OPT_TOTAL; i++) {
        enum option_id id = (enum option_id)i;
        setting_value_release(option_info(id)->type, field_of(settings, id));
        origin_set(&settings->origins[id], SOURCE_DEFAULT, NULL);
    }
}

void settings_reset(struct settings *settings, enum option_id id)
{
    setting_value_release(option_info(id)->type, field_of(settings, id));
    field_init(settings, id);
    origin_set(&settings->origins[id], SOURCE_DEFAULT, NULL);
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
