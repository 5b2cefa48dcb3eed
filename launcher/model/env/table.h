/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "NAME=value" strings found by name in constant time, and lists as the value of one. Pure.
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

/* Lists. The caller owns what is returned; NULL means that the list is unknown or would be larger
 * than a variable can be. */

char *env_list_numbers(const int *numbers, int count, char separator); /* "1 3 2" */
char *env_list_sums(const int *numbers, int count);                    /* of all before: "0 1 4" */

/* Slurm's notation of sizes per node: "4(x2),2" for 4, 4, 2. */
char *env_list_sizes(const int *sizes, int count);

/* "NAME=" and the folders of `value` (NULL or empty: none), with `folder` as the last one,
 * where it may be already. */
char *env_list_path(const char *name, const char *value, const char *folder);

/* "NAME=" and `value` (NULL: empty), with those of the NULL-ended `words` appended that it does not
 * have and that no `*` in it covers, separated by commas. NULL when the result is empty and
 * `value` is NULL. */
char *env_list_with(const char *name, const char *value, const char *const *words);
