/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process sets of a job, by number. All ranks of the job know all sets, and give new ones the
 * same numbers: a number is never used again. Any thread may call these functions.
 *
 * Lock. `lock` is held for short times only. It may be held while a set rings its thread, or takes
 * its own lock.
 *
 * A set begins on all ranks of the job, in the same order: the static sets in hvd_init(), others in
 * the thread of set 0. Its members make a communicator and a control channel, and start its thread.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/setup.h"
#include "loop/knobs.h"
#include "loop/set.h"

struct sets {
    pthread_mutex_t lock;
    struct process_set **items; /* ascending by number */
    size_t room;
    int32_t count, next; /* `next`: the number of the next set */
};

void sets_init(struct sets *sets);
void sets_destroy(struct sets *sets); /* releases them; nobody may use them any more */
/* A set, which the caller releases; NULL: there is not such a set. */
struct process_set *sets_hold(struct sets *sets, int32_t id);
/* The numbers of all sets, ascending. Returns how many there are. */
int32_t sets_ids(struct sets *sets, int32_t *ids, int32_t room);
/* Calls `each` for the sets, in the order of their numbers, with the lock held. */
void sets_each(struct sets *sets, void (*each)(void *context, struct process_set *set),
               void *context);

/* ---- Making and removing them ---------------------------------------------------------------- */

/* Makes set 0, which takes the communicator of all ranks. */
enum hvd_status set_maker_first(const struct set_maker *maker, struct engine_comm *comm,
                                struct error *err);
/* Makes a set that hvd_init() was given. */
enum hvd_status set_maker_static(const struct set_maker *maker, const struct hvd_ranks *wanted,
                                 struct error *err);
/* A request of set 0, in its thread. As `change` in executor.h. */
enum hvd_status set_maker_change(const struct set_maker *maker, const struct request *request,
                                 struct outcome *outcome, struct error *err);
/* Waits for the thread of a set, which must end, and destroys its communicator. */
void set_maker_end(const struct set_maker *maker, struct process_set *set);

/* ---- The ranks of a set. Pure. --------------------------------------------------------------- */

/* The ranks ascending, for the caller to free. NULL: they are not those of a process set of a job
 * with `size` ranks; the error says why. */
int *members_sorted(const int32_t *ranks, int32_t count, int size, struct error *err);
/* All ranks of a job with `size` ranks, for the caller to free. */
int *members_all(int size);

/* What the ranks 0 to size - 1 have given: for each its set, ascending, back to back. A count of 0
 * says that the rank is in none. Borrowed. */
struct given_sets {
    const int32_t *ranks;
    const int64_t *counts;
    int32_t size;
};

/* -1: the members of a set gave different ones; the error names them. Every rank gets the same
 * answer. Expects numbers from 0 to size - 1. */
int given_sets_check(const struct given_sets *given, struct error *err);

/* The set that `rank` gave, if it is the set's first member; NULL: it is not, or it gave none. So
 * each set is found once. */
const int32_t *given_sets_first(const struct given_sets *given, int32_t rank);

/* The set that `rank` gave. */
const int32_t *given_sets_of(const struct given_sets *given, int32_t rank);
