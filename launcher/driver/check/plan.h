/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who tries to reach whom in `hvdrun check`. Pure.
 *
 * Up to CHECK_ALL_PAIRS hosts: everyone everyone, in both directions. Beyond that everyone those
 * that are 1, 2, 4, 8... places after it in the list, and is tried by them: enough for every host
 * to be seen from several others, near and far.
 *
 * Rounds are for transfers: in one round a host takes part in one route at most.
 */
#pragma once

#include <stddef.h>

#define CHECK_ALL_PAIRS 64

struct check_route {
    int from, to; /* numbers of hosts, from 0 */
    int round;
};

/* All routes among `hosts` of them, ordered by `from`, then `to`; the caller's. Rounds are counted
 * from 0; `*rounds` says how many there are. */
struct check_route *check_plan(int hosts, size_t *count, int *rounds);
