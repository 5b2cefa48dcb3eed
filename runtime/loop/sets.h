/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process sets that exist, by number. All ranks of the job know all sets, and give new ones the
 * same numbers: a number is never used again. Any thread may call these functions.
 *
 * Lock. `lock` is held for short times only. It may be held while a set rings its thread, or takes
 * its own lock.
 */
#pragma once

#include <pthread.h>

#include "loop/set.h"

struct sets {
    pthread_mutex_t lock;
    struct process_set **items; /* ascending by number */
    int32_t count, room;
    int32_t next; /* number of the next set */
};

void sets_init(struct sets *sets);
void sets_destroy(struct sets *sets); /* releases them; nobody may use them any more */

/* The number of the set of exactly these ranks, ascending; -1: there is none. */
int32_t sets_of_ranks(struct sets *sets, const int *ranks, int count);
int32_t sets_take_number(struct sets *sets); /* of a new set */
void sets_add_take(struct sets *sets, struct process_set *set);
/* A set, which the caller releases; NULL: there is not such a set. */
struct process_set *sets_hold(struct sets *sets, int32_t id);
struct process_set *sets_remove(struct sets *sets, int32_t id); /* the same */
/* The numbers of all sets, ascending. Returns how many there are. */
int32_t sets_ids(struct sets *sets, int32_t *ids, int32_t room);
/* Calls `each` for the sets, in the order of their numbers, with the lock held. */
void sets_each(struct sets *sets, void (*each)(void *context, struct process_set *set),
               void *context);
