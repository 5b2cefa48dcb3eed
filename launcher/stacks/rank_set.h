/* SPDX-License-Identifier: Apache-2.0 */
/* A set of ranks that grows. Pure. */
#pragma once

#include <stddef.h>

struct rank_set {
    int *ranks;
    size_t count, room;
};

void rank_set_add(struct rank_set *set, int rank); /* cheap if a rank comes again at once */
void rank_set_sort(struct rank_set *set);          /* ascending, each rank once */
void rank_set_destroy(struct rank_set *set);
/* Fewer ranks come first, then the lower ones. Both are sorted. */
int rank_set_compare(const struct rank_set *a, const struct rank_set *b);
