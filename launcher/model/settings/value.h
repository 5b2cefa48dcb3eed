/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts between texts and the values of options. Only the option's type counts, so a value that
 * works as a flag works in INI, YAML and the environment too. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/strv.h"
#include "model/settings/option.h"

#define SET_RANK_NONE (-1)
#define SET_RANK_ALL (-2)

struct duration_range {
    int64_t min_ms, max_ms; /* both -1: unset */
};
#define SET_NO_RANGE \
    {                \
        -1, -1       \
    }

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

/* Sets the field (frees what it held; a list grows). A bad text changes nothing and fills `err`
 * with the text and what was expected. */
int setting_value_parse(enum option_id id, union setting_field field, const char *text,
                        struct error *err);

/* Appends what setting_value_parse() would take; -1 and nothing appended when the field is unset.
 */
int setting_value_format(enum option_id id, union setting_field field, struct buf *out);

/* Frees what the field owns. */
void setting_value_release(enum option_type type, union setting_field field);
