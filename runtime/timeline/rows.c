/* SPDX-License-Identifier: Apache-2.0 */
#include "timeline/rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

#define ROOM_FIRST 256

/* Open addressing; at most half full. */
struct timeline_rows {
    struct timeline_row *list; /* name NULL: free */
    size_t room;               /* a power of two */
    size_t count;
    int64_t given; /* numbers */
};

struct timeline_rows *timeline_rows_create(void)
{
    struct timeline_rows *rows = mem_alloc(sizeof(*rows));
    rows->room = ROOM_FIRST;
    rows->list = mem_array(rows->room, sizeof(*rows->list));
    return rows;
}

static void forget_all(struct timeline_rows *rows)
{
    for (size_t i = 0; i < rows->room; i++) {
        free(rows->list[i].name);
        rows->list[i] = (struct timeline_row){.name = NULL};
    }
    rows->count = 0;
}

void timeline_rows_destroy(struct timeline_rows *rows)
{
    if (rows == NULL)
        return;
    forget_all(rows);
    free(rows->list);
    free(rows);
}

static uint32_t hash_of(int32_t set, const char *name)
{
    uint64_t hash = hash_add(HASH_START ^ (uint32_t)set, name, strlen(name));
    return (uint32_t)(hash ^ (hash >> 32));
}

static size_t find(const struct timeline_rows *rows, uint32_t hash, int32_t set, const char *name)
{
    size_t at = hash & (rows->room - 1);
    for (; rows->list[at].name != NULL; at = (at + 1) & (rows->room - 1)) {
        const struct timeline_row *row = &rows->list[at];
        if (row->hash == hash && row->set == set && strcmp(row->name, name) == 0)
            break;
    }
    return at;
}

static void grow(struct timeline_rows *rows)
{
    struct timeline_row *old = rows->list;
    size_t room = rows->room;
    rows->room = 2 * room;
    rows->list = mem_array(rows->room, sizeof(*rows->list));
    for (size_t i = 0; i < room; i++) {
        if (old[i].name != NULL)
            rows->list[find(rows, old[i].hash, old[i].set, old[i].name)] = old[i];
    }
    free(old);
}

struct timeline_row *timeline_rows_get(struct timeline_rows *rows, int32_t set, const char *name,
                                       bool *is_new)
{
    uint32_t hash = hash_of(set, name);
    size_t at = find(rows, hash, set, name);
    *is_new = rows->list[at].name == NULL;
    if (!*is_new)
        return &rows->list[at];
    if (rows->count == TIMELINE_ROWS_MAX)
        forget_all(rows);
    else if (2 * (rows->count + 1) > rows->room)
        grow(rows);
    at = find(rows, hash, set, name);
    rows->count++;
    rows->list[at] = (struct timeline_row){
        .name = mem_strdup(name), .set = set, .hash = hash, .number = ++rows->given};
    return &rows->list[at];
}
