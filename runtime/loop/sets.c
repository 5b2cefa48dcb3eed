/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/sets.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void sets_init(struct sets *sets)
{
    *sets = (struct sets){.count = 0};
    pthread_mutex_init(&sets->lock, NULL);
}

void sets_destroy(struct sets *sets)
{
    for (int32_t i = 0; i < sets->count; i++)
        set_release(sets->items[i]);
    free(sets->items);
    pthread_mutex_destroy(&sets->lock);
}

int32_t sets_of_ranks(struct sets *sets, const int *ranks, int count)
{
    int32_t found = -1;
    pthread_mutex_lock(&sets->lock);
    for (int32_t i = 0; i < sets->count && found < 0; i++)
        if (set_size(sets->items[i]) == count &&
            memcmp(set_ranks(sets->items[i]), ranks, (size_t)count * sizeof *ranks) == 0)
            found = set_id(sets->items[i]);
    pthread_mutex_unlock(&sets->lock);
    return found;
}

int32_t sets_take_number(struct sets *sets)
{
    pthread_mutex_lock(&sets->lock);
    int32_t number = sets->next++;
    pthread_mutex_unlock(&sets->lock);
    return number;
}

void sets_add_take(struct sets *sets, struct process_set *set)
{
    pthread_mutex_lock(&sets->lock);
    if (sets->count == sets->room) {
        sets->room = 2 * sets->room + 4;
        sets->items =
            mem_resize_array(sets->items, (size_t)sets->room, sizeof(struct process_set *));
    }
    sets->items[sets->count++] = set;
    pthread_mutex_unlock(&sets->lock);
}

/* With the lock held. `count`: there is not such a set. */
static int32_t find(const struct sets *sets, int32_t id)
{
    int32_t i = 0;
    while (i < sets->count && set_id(sets->items[i]) != id)
        i++;
    return i;
}

struct process_set *sets_hold(struct sets *sets, int32_t id)
{
    pthread_mutex_lock(&sets->lock);
    int32_t at = find(sets, id);
    struct process_set *set = at < sets->count ? set_hold(sets->items[at]) : NULL;
    pthread_mutex_unlock(&sets->lock);
    return set;
}

struct process_set *sets_remove(struct sets *sets, int32_t id)
{
    struct process_set *set = NULL;
    pthread_mutex_lock(&sets->lock);
    int32_t at = find(sets, id);
    if (at < sets->count) {
        set = sets->items[at];
        sets->count--;
        memmove(&sets->items[at], &sets->items[at + 1],
                (size_t)(sets->count - at) * sizeof(struct process_set *));
    }
    pthread_mutex_unlock(&sets->lock);
    return set;
}

int32_t sets_ids(struct sets *sets, int32_t *ids, int32_t room)
{
    pthread_mutex_lock(&sets->lock);
    int32_t count = sets->count;
    for (int32_t i = 0; i < count && i < room; i++)
        ids[i] = set_id(sets->items[i]);
    pthread_mutex_unlock(&sets->lock);
    return count;
}

void sets_each(struct sets *sets, void (*each)(void *context, struct process_set *set),
               void *context)
{
    pthread_mutex_lock(&sets->lock);
    for (int32_t i = 0; i < sets->count; i++)
        each(context, sets->items[i]);
    pthread_mutex_unlock(&sets->lock);
}
