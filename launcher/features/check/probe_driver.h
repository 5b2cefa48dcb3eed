/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network part of `hvdrun check`. Every host listens on the address that a job would use, and
 * the others connect to it. With --net they also send data to each other, in rounds, so
 * that no two transfers share a host.
 */
#pragma once

#include <stddef.h>

#include "driver/job/job.h"
#include "features/check/result.h"

struct check_probe;

/* Probes all hosts in `result` that have not failed, and writes links, addresses and problems
 * there. `done` comes exactly once, from the loop, never from within this call. */
struct check_probe *check_probe_begin(struct job *job, struct check_result *result, bool net,
                                      void (*done)(void *context), void *context);
void check_probe_destroy(struct check_probe *probe); /* accepts NULL */

/* The host failed: the probe does not use it any longer. */
void check_probe_host_failed(struct check_probe *probe, int host);

struct check_route {
    int from, to; /* numbers of hosts, from 0 */
    int round;
};

/* All routes among `hosts` hosts, ordered by `from`, then `to`. The caller frees them. Rounds
 * count from 0; `*rounds` is their number. */
struct check_route *check_plan(int hosts, size_t *count, int *rounds);
