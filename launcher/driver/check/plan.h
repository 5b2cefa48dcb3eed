/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which host connects to which in `hvdrun check`. Pure.
 *
 * Up to CHECK_ALL_PAIRS hosts, every host connects to every other host. Beyond that, each host
 * connects to the hosts that are 1, 2, 4, 8... places after it in the list, and these connect to
 * it. So several other hosts, near and far, test each host.
 *
 * Transfers run in rounds: a host takes part in at most one route of a round.
 */
#pragma once

#include <stddef.h>

#define CHECK_ALL_PAIRS 64

struct check_route {
    int from, to; /* numbers of hosts, from 0 */
    int round;
};

/* All routes among `hosts` hosts, ordered by `from`, then `to`. The caller frees them. Rounds
 * count from 0; `*rounds` is their number. */
struct check_route *check_plan(int hosts, size_t *count, int *rounds);
