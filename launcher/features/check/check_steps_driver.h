/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of `hvdrun check` in the driver: probes, GPUs, and the verdict. */
#pragma once

#include <stddef.h>

#include "driver/job/ask.h"
#include "driver/job/job.h"
#include "features/check/check.h"

/*
 * probe_driver.c: the network part of `hvdrun check`. Every host listens on the address that a job
 * would use, and the others connect to it. With --net they also send data to each other, in rounds,
 * so that no two transfers share a host.
 */

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

#define CHECK_ALL_PAIRS 64

/* All routes among `hosts` hosts, ordered by `from`, then `to`. The caller frees them. Rounds
 * count from 0; `*rounds` is their number. */
struct check_route *check_plan(int hosts, size_t *count, int *rounds);

/*
 * gpus_driver.c: the part of `hvdrun check --gpu`. It asks each machine once about its GPUs. Then
 * come all-reduces between hosts, each with its neighbours before and after it. That is two hosts
 * at a time, so that a slow one is not hidden by the others. The figure of a host is the better one
 * of its two: a host beside a slow one is not slow for that.
 *
 *   round 0: hosts 0-1, 2-3, 4-5 ...; round 1: hosts 1-2, 3-4 ...
 */

/* Asks all hosts in `result` that have not failed; and writes there what they have said. */
void check_gpus_ask(struct job *job, const struct check_result *result, const char *python,
                    ask_done *done, void *context);
void check_gpus_take(struct check_result *result, const struct ask *ask);

struct check_between;

/* Of the hosts whose GPUs were looked at, and that have PyTorch. `done` comes once: from the loop,
 * or at once if there are not two such hosts. */
struct check_between *check_between_begin(struct job *job, struct check_result *result,
                                          const char *python, void (*done)(void *context),
                                          void *context);
void check_between_destroy(struct check_between *between); /* accepts NULL */

/*
 * judge_driver.c: judges what `hvdrun check` found: facts in, findings out. Pure.
 *
 * A finding is fatal if a job on these hosts would fail: a host that cannot be used, no runtime
 * folder, no network, or a connection between two hosts that cannot be set up. Everything else is a
 * warning: some jobs run anyway, others are slower or fail late.
 */

/* Fills in `clock_ns`. `here_ns`: our wall clock minus our monotonic one; `offset_ns`: the host's
 * monotonic clock minus ours. */
void check_host_clock(struct check_host *host, int64_t here_ns, int64_t offset_ns);

/* By number of a host: the first one that is the same machine; the caller frees it. A host that has
 * failed is like no other, unless `failed` too. */
int *check_first_names(const struct check_result *result, bool failed);

/* Appends the findings, fatal ones first, otherwise in the order of the hosts. */
void check_judge(const struct check_result *result, struct check_findings *out);
