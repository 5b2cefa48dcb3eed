/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/members.h"

#include <stdbool.h>
#include <stdlib.h>

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
