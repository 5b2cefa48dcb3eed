/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/sets.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void sets_destroy(struct sets *sets)
{
    for (int32_t i = 0; i < sets->count; i++)
        set_release(sets->items[i]);
    free(sets->items);
    *sets = (struct sets){0};
}

void sets_add_take(struct sets *sets, struct process_set *set)
{
    if (sets->count == sets->room) {
        sets->room = 2 * sets->room + 4;
        sets->items =
            mem_resize_array(sets->items, (size_t)sets->room, sizeof(struct process_set *));
    }
    sets->items[sets->count++] = set;
    sets->next = set_id(set) + 1;
}

struct process_set *sets_find(const struct sets *sets, int32_t id)
{
    for (int32_t i = 0; i < sets->count; i++)
        if (set_id(sets->items[i]) == id)
            return sets->items[i];
    return NULL;
}

struct process_set *sets_of_ranks(const struct sets *sets, const int *ranks, int count)
{
    for (int32_t i = 0; i < sets->count; i++)
        if (set_size(sets->items[i]) == count &&
            memcmp(set_ranks(sets->items[i]), ranks, (size_t)count * sizeof *ranks) == 0)
            return sets->items[i];
    return NULL;
}

struct process_set *sets_remove(struct sets *sets, int32_t id)
{
    for (int32_t i = 0; i < sets->count; i++) {
        struct process_set *set = sets->items[i];
        if (set_id(set) != id)
            continue;
        sets->count--;
        memmove(&sets->items[i], &sets->items[i + 1],
                (size_t)(sets->count - i) * sizeof(struct process_set *));
        return set;
    }
    return NULL;
}
