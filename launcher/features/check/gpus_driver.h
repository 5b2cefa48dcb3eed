/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's part of `hvdrun check --gpu`: asks each machine once about its GPUs. */
#pragma once

#include "driver/job/job.h"
#include "features/check/result.h"

struct check_gpus;

/* Asks all hosts in `result` that have not failed, and writes what they say there. `done` comes
 * once, from the loop, never from within this call. */
struct check_gpus *check_gpus_begin(struct job *job, struct check_result *result,
                                    const char *python, void (*done)(void *context), void *context);
void check_gpus_destroy(struct check_gpus *gpus); /* accepts NULL */
