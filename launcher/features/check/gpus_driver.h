/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's part of `hvdrun check --gpu`: asks each machine once about its GPUs. Then come
 * all-reduces between hosts, each with its neighbours before and after it. That is two hosts at a
 * time, so that a slow one is not hidden by the others. The figure of a host is the better one of
 * its two: a host beside a slow one is not slow for that.
 *
 *   round 0: hosts 0-1, 2-3, 4-5 ...; round 1: hosts 1-2, 3-4 ...; round 2: the last and the first
 */
#pragma once

#include "driver/job/job.h"
#include "features/check/result.h"

struct check_gpus;

/* Asks all hosts in `result` that have not failed, and writes what they say there. `done` comes
 * once, from the loop, never from within this call. */
struct check_gpus *check_gpus_begin(struct job *job, struct check_result *result,
                                    const char *python, void (*done)(void *context), void *context);
void check_gpus_destroy(struct check_gpus *gpus); /* accepts NULL */

struct check_between;

/* Of the hosts whose GPUs were looked at, and that have PyTorch. `done` comes once: from the loop,
 * or at once if there are not two such hosts. */
struct check_between *check_between_begin(struct job *job, struct check_result *result,
                                          const char *python, void (*done)(void *context),
                                          void *context);
void check_between_destroy(struct check_between *between); /* accepts NULL */
