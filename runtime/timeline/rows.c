/* SPDX-License-Identifier: Apache-2.0 */
#include "timeline/rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"

struct timeline_rows {
    struct map by_key;
    char *key; /* the number of the set, and the name: room for the longest so far */
    size_t key_room;
    int64_t given; /* numbers */
};

struct timeline_rows *timeline_rows_create(void)
{
    return mem_alloc(sizeof(struct timeline_rows));
}

void timeline_rows_destroy(struct timeline_rows *rows)
{
    if (rows == NULL)
        return;
    map_clear(&rows->by_key, free);
    free(rows->key);
    free(rows);
}

static struct map_key key_of(struct timeline_rows *rows, int32_t set, const char *name,
                             size_t length)
{
    if (sizeof(set) + length > rows->key_room) {
        rows->key_room = 2 * (sizeof(set) + length);
        rows->key = mem_resize(rows->key, rows->key_room);
    }
    memcpy(rows->key, &set, sizeof(set));
    memcpy(rows->key + sizeof(set), name, length);
    return map_bytes(rows->key, sizeof(set) + length);
}

struct timeline_row *timeline_rows_get(struct timeline_rows *rows, int32_t set, const char *name,
                                       bool *is_new)
{
    size_t length = strlen(name);
    struct map_key key = key_of(rows, set, name, length);
    struct timeline_row *row = map_get(&rows->by_key, key);
    *is_new = row == NULL;
    if (row != NULL)
        return row;
    if (rows->by_key.count == TIMELINE_ROWS_MAX)
        map_clear(&rows->by_key, free);
    row = mem_alloc(sizeof(*row) + length + 1);
    row->number = ++rows->given;
    row->set = set;
    memcpy(row->name, name, length);
    key.bytes = &row->set;
    map_put(&rows->by_key, key, row);
    return row;
}
