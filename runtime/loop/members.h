/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks that a program wants in a process set, and sets of which each rank has given its own.
 * Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

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
