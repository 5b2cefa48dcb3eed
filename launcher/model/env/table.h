/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "NAME=value" strings found by name in constant time. Pure.
 *
 * The table borrows the strings. A name keeps the number of its slot, so a caller may remember it.
 * An empty slot (NULL) is a name without a value.
 */
#pragma once

#include <stddef.h>

#include "base/map.h"

struct env_table {
    const char **vars; /* by slot: "NAME=value" or NULL */
    size_t count, room;
    struct map slots; /* by name: slot + 1 */
};

#define ENV_TABLE_NONE ((size_t)-1)

void env_table_destroy(struct env_table *table);
size_t env_table_find(const struct env_table *table, const char *name); /* ENV_TABLE_NONE */
size_t env_table_slot(struct env_table *table, const char *name); /* finds or adds an empty one */

/* Both take "NAME=value" and ignore a text without '=' or without a name. */
void env_table_put(struct env_table *table, const char *pair);     /* replaces */
void env_table_default(struct env_table *table, const char *pair); /* only when it has no value */

const char *env_table_value(const struct env_table *table, const char *name); /* NULL: none */
size_t env_name_length(const char *pair); /* bytes before '=' or the end */
