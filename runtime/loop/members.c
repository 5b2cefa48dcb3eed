/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/members.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static int compare_ints(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

int *members_sorted(const int32_t *ranks, int32_t count, int size, struct error *err)
{
    if (ranks == NULL || count < 1 || count > size) {
        error_set(err, "a process set has 1 to %d ranks, and not %d", size, count);
        return NULL;
    }
    int *sorted = mem_array((size_t)count, sizeof *sorted);
    for (int32_t i = 0; i < count; i++)
        sorted[i] = ranks[i];
    qsort(sorted, (size_t)count, sizeof *sorted, compare_ints);
    for (int32_t i = 0; i < count; i++) {
        bool twice = i > 0 && sorted[i] == sorted[i - 1];
        if (!twice && sorted[i] >= 0 && sorted[i] < size)
            continue;
        error_set(err, "the rank %d of a process set %s", sorted[i],
                  twice ? "occurs twice" : "is not in the job");
        free(sorted);
        return NULL;
    }
    return sorted;
}

int *members_all(int size)
{
    int *ranks = mem_array((size_t)size, sizeof *ranks);
    for (int i = 0; i < size; i++)
        ranks[i] = i;
    return ranks;
}

/* ---- Sets that the ranks have given ---------------------------------------------------------- */

const int32_t *given_sets_of(const struct given_sets *given, int32_t rank)
{
    const int32_t *at = given->ranks;
    for (int32_t i = 0; i < rank; i++)
        at += given->counts[i];
    return at;
}

static bool has(const int32_t *set, int64_t count, int32_t member)
{
    for (int64_t i = 0; i < count; i++)
        if (set[i] == member)
            return true;
    return false;
}

static int another(int32_t rank, int32_t member, struct error *err)
{
    return error_set(err, "the communicator of rank %d has rank %d, which gave another one", rank,
                     member);
}

/* Each set is compared with that of its first member only. So the work grows with the length of
 * the sets, and not with its square. */
int given_sets_check(const struct given_sets *given, struct error *err)
{
    const int64_t *counts = given->counts;
    int64_t *at AUTO_FREE = mem_array((size_t)given->size, sizeof *at);
    for (int32_t rank = 1; rank < given->size; rank++)
        at[rank] = at[rank - 1] + counts[rank - 1];
    for (int32_t rank = 0; rank < given->size; rank++) {
        if (counts[rank] == 0)
            continue;
        const int32_t *set = given->ranks + at[rank];
        int32_t first = set[0];
        if (!has(set, counts[rank], rank))
            return error_set(err, "rank %d is not in the communicator that it gave", rank);
        if (counts[first] != counts[rank] ||
            memcmp(given->ranks + at[first], set, (size_t)counts[rank] * sizeof *set) != 0)
            return another(rank, first, err);
        for (int64_t i = 0; i < counts[rank]; i++)
            if (counts[set[i]] == 0 || given->ranks[at[set[i]]] != first)
                return another(rank, set[i], err);
    }
    return 0;
}

const int32_t *given_sets_first(const struct given_sets *given, int32_t rank)
{
    const int32_t *set = given_sets_of(given, rank);
    return given->counts[rank] > 0 && set[0] == rank ? set : NULL;
}
