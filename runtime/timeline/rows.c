/* SPDX-License-Identifier: Apache-2.0 */
#include "timeline/rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"

struct timeline_rows {
    struct map by_key;
    struct buf key; /* the number of the set, and the name */
    int64_t given;  /* numbers */
};

struct timeline_rows *timeline_rows_create(void)
{
    struct timeline_rows *rows = mem_alloc(sizeof(*rows));
    buf_init(&rows->key, SIZE_MAX);
    return rows;
}

void timeline_rows_destroy(struct timeline_rows *rows)
{
    if (rows == NULL)
        return;
    map_clear(&rows->by_key, free);
    buf_destroy(&rows->key);
    free(rows);
}

struct timeline_row *timeline_rows_get(struct timeline_rows *rows, int32_t set, const char *name,
                                       bool *is_new)
{
    buf_clear(&rows->key);
    buf_append(&rows->key, &set, sizeof(set));
    buf_puts(&rows->key, name);
    struct map_key key = map_bytes(buf_text(&rows->key), rows->key.length);
    struct timeline_row *row = map_get(&rows->by_key, key);
    *is_new = row == NULL;
    if (row != NULL)
        return row;
    if (rows->by_key.count == TIMELINE_ROWS_MAX)
        map_clear(&rows->by_key, free);
    size_t name_size = strlen(name) + 1;
    row = mem_alloc(sizeof(*row) + name_size);
    row->number = ++rows->given;
    row->set = set;
    memcpy(row->name, name, name_size);
    key.bytes = &row->set;
    map_put(&rows->by_key, key, row);
    return row;
}
