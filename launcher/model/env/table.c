/* SPDX-License-Identifier: Apache-2.0 */
#include "model/env/table.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

size_t env_name_length(const char *pair)
{
    return strcspn(pair, "=");
}

void env_table_destroy(struct env_table *table)
{
    free(table->vars);
    map_clear(&table->slots, NULL);
    *table = (struct env_table){0};
}

static struct map_key key_of(const char *name)
{
    return map_bytes(name, env_name_length(name));
}

size_t env_table_find(const struct env_table *table, const char *name)
{
    return (size_t)map_get(&table->slots, key_of(name)) - 1;
}

/* The slot of this name, perhaps a new one. */
static size_t slot_of(struct env_table *table, struct map_key key)
{
    size_t slot = (size_t)map_get(&table->slots, key);
    if (slot == 0) {
        table->vars = mem_one_more(table->vars, table->count, &table->room, sizeof(*table->vars));
        table->vars[table->count] = NULL;
        slot = ++table->count;
    }
    map_put(&table->slots, key, (void *)slot);
    return slot - 1;
}

size_t env_table_slot(struct env_table *table, const char *name)
{
    size_t found = env_table_find(table, name);
    return found != ENV_TABLE_NONE ? found : slot_of(table, key_of(name));
}

static bool is_pair(const char *pair)
{
    return pair[0] != '=' && pair[env_name_length(pair)] == '=';
}

void env_table_put(struct env_table *table, const char *pair)
{
    if (!is_pair(pair))
        return;
    size_t slot = slot_of(table, key_of(pair)); /* may move the array */
    table->vars[slot] = pair;
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
