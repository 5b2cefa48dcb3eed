/* SPDX-License-Identifier: Apache-2.0 */
#include "model/env/table.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
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

#define LIST_MAX 131000 /* the kernel's limit for one string (MAX_ARG_STRLEN), less the name */

char *env_list_numbers(const int *numbers, int count, char separator)
{
    struct buf list AUTO_BUF = BUF_INIT(LIST_MAX);
    int failed = 0;
    for (int i = 0; i < count; i++)
        failed |= buf_printf(&list, "%d%c", numbers[i], separator);
    buf_truncate(&list, list.length > 0 ? list.length - 1 : 0);
    return failed != 0 ? NULL : buf_take(&list);
}

char *env_list_sums(const int *numbers, int count)
{
    struct buf list AUTO_BUF = BUF_INIT(LIST_MAX);
    long long sum = 0;
    int failed = 0;
    for (int i = 0; i < count; i++) {
        failed |= buf_printf(&list, "%s%lld", i > 0 ? " " : "", sum);
        sum += numbers[i];
    }
    return failed != 0 ? NULL : buf_take(&list);
}

char *env_list_sizes(const int *sizes, int count)
{
    if (sizes == NULL)
        return NULL;
    struct buf list AUTO_BUF = BUF_INIT(LIST_MAX);
    int failed = 0;
    for (int i = 0, run = 0; i < count; i += run) {
        run = 1;
        while (i + run < count && sizes[i + run] == sizes[i])
            run++;
        failed |=
            buf_printf(&list, run > 1 ? "%s%d(x%d)" : "%s%d", i > 0 ? "," : "", sizes[i], run);
    }
    return failed != 0 ? NULL : buf_take(&list);
}

static bool list_has(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (list += strspn(list, ", "); *list != '\0'; list += strspn(list, ", ")) {
        size_t item = strcspn(list, ", ");
        if ((item == length && memcmp(list, word, length) == 0) || (item == 1 && *list == '*'))
            return true;
        list += item;
    }
    return false;
}

char *env_list_path(const char *name, const char *value, const char *folder)
{
    size_t length = value == NULL ? 0 : strlen(value), own = strlen(folder);
    bool ends = length >= own && strcmp(value + length - own, folder) == 0 &&
                (length == own || value[length - own - 1] == ':');
    if (length == 0 || ends)
        return mem_printf("%s=%s", name, length == 0 ? folder : value);
    return mem_printf("%s=%s:%s", name, value, folder);
}

char *env_list_with(const char *name, const char *value, const char *const *words)
{
    char *list = mem_strdup(value != NULL ? value : "");
    for (; *words != NULL; words++) {
        if (list_has(list, *words))
            continue;
        char *longer = mem_printf("%s%s%s", list, *list != '\0' ? "," : "", *words);
        free(list);
        list = longer;
    }
    char *pair = *list != '\0' || value != NULL ? mem_printf("%s=%s", name, list) : NULL;
    free(list);
    return pair;
}
