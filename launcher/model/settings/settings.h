/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of one run: a typed field for each option of model/settings/option.def, named as
 * the long option with underscores (`--fusion-threshold-mb` is `fusion_threshold_mb`; `--stdin` is
 * `stdin_`). model/settings/option.h says for each type what the C type is. Pure.
 *
 * Unset is NULL for texts, -1 for TRISTATE, and an empty list. For numbers it is -1 where 0 is a
 * value, and 0 where the values start at 1 (np, ports). For times without a default it is -1.
 * Durations are milliseconds.
 *
 * Every value remembers its source, so that a message can name it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/strv.h"
#include "model/settings/option.h"

/* As "all|none|auto|". */
#define SET_RANK_ALL (-1)
#define SET_RANK_NONE (-2)
#define SET_RANK_AUTO (-3)

struct duration_range {
    int64_t min_ms, max_ms; /* both -1: unset */
};
#define SET_NO_RANGE \
    {                \
        -1, -1       \
    }

/* Sources in rising precedence. */
enum setting_source {
    SOURCE_DEFAULT,
    SOURCE_USER_FILE,   /* ~/.config/hvdrun/config.ini; place: "FILE:LINE: KEY" */
    SOURCE_FILE,        /* --config-file; place: "FILE:LINE: KEY" */
    SOURCE_ENVIRONMENT, /* place: name of the variable */
    SOURCE_FLAG,        /* place: the option as it was typed */
};

struct setting_origin {
    enum setting_source source;
    char *place;                  /* owned; NULL for defaults */
    struct setting_origin *items; /* LIST: of each of its items; owned */
    size_t count;
};

#define SETTING_C_STRING char *
#define SETTING_C_TEMPLATE char *
#define SETTING_C_RANKS char *
#define SETTING_C_INT int64_t
#define SETTING_C_DOUBLE double
#define SETTING_C_COUNT int64_t
#define SETTING_C_BOOL bool
#define SETTING_C_TRISTATE int
#define SETTING_C_DURATION int64_t
#define SETTING_C_RANGE struct duration_range
#define SETTING_C_RANK int64_t
#define SETTING_C_ENUM int
#define SETTING_C_LIST struct strv

struct settings {
#define OPTION(name, type, ...) SETTING_C_##type name;
#include "model/settings/option.def"
    struct setting_origin origins[OPT_TOTAL];
    bool dial_open; /* no option: --transport dial does without a secret, and dial_id is the key */
};

void settings_init(struct settings *settings); /* the defaults */
void settings_destroy(struct settings *settings);

/*
 * Gives option `id` the value `text` as it is typed, from `source` at `place` (copied). Scalars:
 * the last call wins. Lists: a call adds; the first one of another source empties the list before
 * (unless FLAG_APPEND). On a bad value returns -1 with "PLACE: value and what was expected" in
 * `err`.
 */
int settings_set(struct settings *settings, enum option_id id, const char *text,
                 enum setting_source source, const char *place, struct error *err);

/* Back to the default. */
void settings_reset(struct settings *settings, enum option_id id);

bool settings_is_set(const struct settings *settings, enum option_id id); /* not the default */
enum setting_source settings_source(const struct settings *settings, enum option_id id);
const char *settings_place(const struct settings *settings, enum option_id id); /* never NULL */

/* Where item `index` of a LIST comes from. Borrowed until the next change. */
const struct setting_origin *settings_item_origin(const struct settings *settings,
                                                  enum option_id id, size_t index);
const struct strv *settings_list(const struct settings *settings,
                                 enum option_id id); /* of a LIST */

/* Appends the value as settings_set() would take it (lists: joined with commas). Returns -1 and
 * appends nothing when there is no value. */
int settings_format(const struct settings *settings, enum option_id id, struct buf *out);

/* Does an option that was given make the job elastic? */
bool settings_is_elastic(const struct settings *settings);
