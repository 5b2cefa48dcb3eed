/* SPDX-License-Identifier: Apache-2.0 */
#include "model/env/table.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

size_t env_name_length(const char *pair)
{
    return strcspn(pair, "=");
}

static bool same_name(const char *a, const char *b, size_t length)
{
    return strncmp(a, b, length) == 0 && env_name_length(a) == length;
}

void env_table_destroy(struct env_table *table)
{
    free(table->vars);
    free(table->names);
    free(table->index);
    *table = (struct env_table){0};
}

/* Where `name` is in the index, or the free place for it. */
static size_t place_of(const struct env_table *table, const char *name, size_t length)
{
    size_t at = hash_of_bytes(name, length) & (table->index_size - 1);
    while (table->index[at] != 0 && !same_name(table->names[table->index[at] - 1], name, length))
        at = (at + 1) & (table->index_size - 1);
    return at;
}

static void grow(struct env_table *table)
{
    size_t size = table->index_size > 0 ? table->index_size * 2 : 256;
    free(table->index);
    table->index = mem_array(size, sizeof(*table->index));
    table->index_size = size;
    table->vars = mem_resize_array(table->vars, size / 2, sizeof(*table->vars));
    table->names = mem_resize_array(table->names, size / 2, sizeof(*table->names));
    for (size_t i = 0; i < table->count; i++)
        table->index[place_of(table, table->names[i], env_name_length(table->names[i]))] = i + 1;
}

size_t env_table_find(const struct env_table *table, const char *name)
{
    if (table->count == 0)
        return ENV_TABLE_NONE;
    size_t found = table->index[place_of(table, name, env_name_length(name))];
    return found == 0 ? ENV_TABLE_NONE : found - 1;
}

size_t env_table_slot(struct env_table *table, const char *name)
{
    if (2 * (table->count + 1) > table->index_size)
        grow(table);
    size_t at = place_of(table, name, env_name_length(name));
    if (table->index[at] != 0)
        return table->index[at] - 1;
    table->vars[table->count] = NULL;
    table->names[table->count] = name;
    table->index[at] = ++table->count;
    return table->count - 1;
}

static bool is_pair(const char *pair)
{
    return pair[0] != '=' && pair[env_name_length(pair)] == '=';
}

void env_table_put(struct env_table *table, const char *pair)
{
    if (!is_pair(pair))
        return;
    size_t slot = env_table_slot(table, pair); /* may move the arrays */
    table->vars[slot] = pair;
    table->names[slot] = pair;
}

void env_table_default(struct env_table *table, const char *pair)
{
    if (is_pair(pair) && env_table_value(table, pair) == NULL)
        env_table_put(table, pair);
}

const char *env_table_value(const struct env_table *table, const char *name)
{
    size_t slot = env_table_find(table, name);
    if (slot == ENV_TABLE_NONE || table->vars[slot] == NULL)
        return NULL;
    return table->vars[slot] + env_name_length(name) + 1;
}
