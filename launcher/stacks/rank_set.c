/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/rank_set.h"

#include <stdlib.h>

#include "base/mem.h"

void rank_set_add(struct rank_set *set, int rank)
{
    if (set->count > 0 && set->ranks[set->count - 1] == rank)
        return;
    if (set->count == set->room) {
        set->room = set->room > 0 ? 2 * set->room : 4;
        set->ranks = mem_resize_array(set->ranks, set->room, sizeof(*set->ranks));
    }
    set->ranks[set->count++] = rank;
}

static int by_number(const void *a, const void *b)
{
    const int *first = a, *second = b;
    return *first < *second ? -1 : *first > *second;
}

void rank_set_sort(struct rank_set *set)
{
    size_t kept = 0;
    if (set->count > 0)
        qsort(set->ranks, set->count, sizeof(*set->ranks), by_number);
    for (size_t i = 0; i < set->count; i++) {
        if (kept == 0 || set->ranks[kept - 1] != set->ranks[i])
            set->ranks[kept++] = set->ranks[i];
    }
    set->count = kept;
}

void rank_set_destroy(struct rank_set *set)
{
    free(set->ranks);
    *set = (struct rank_set){.ranks = NULL};
}

int rank_set_compare(const struct rank_set *a, const struct rank_set *b)
{
    if (a->count != b->count)
        return a->count < b->count ? -1 : 1;
    for (size_t i = 0; i < a->count; i++) {
        if (a->ranks[i] != b->ranks[i])
            return a->ranks[i] < b->ranks[i] ? -1 : 1;
    }
    return 0;
}
