/* SPDX-License-Identifier: Apache-2.0 */
/* The process sets that exist, by number. All ranks of the job know all sets, and give new ones the
 * same numbers: a number is never used again. The caller has a lock. */
#pragma once

#include "loop/set.h"

struct sets {
    struct process_set **items; /* ascending by number */
    int32_t count, room;
    int32_t next; /* number of the next set */
};

void sets_destroy(struct sets *sets);                               /* releases them */
void sets_add_take(struct sets *sets, struct process_set *set);     /* its number is `next` */
struct process_set *sets_find(const struct sets *sets, int32_t id); /* borrowed */
/* The set of exactly these ranks, ascending; borrowed. NULL: there is none. */
struct process_set *sets_of_ranks(const struct sets *sets, const int *ranks, int count);
struct process_set *sets_remove(struct sets *sets, int32_t id); /* the caller releases it */
