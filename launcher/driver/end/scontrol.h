/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of Slurm's scontrol for the job that we are in, beside everything else: its output, or
 * why there is none.
 */
#pragma once

#include "driver/elastic/discovery_run.h"
#include "driver/job/job.h"
#include "model/allocation/slurm_job.h"

struct scontrol;

/* Where scontrol is; NULL and `err`: it is not along PATH. The caller frees it. */
char *scontrol_find(struct error *err);

/* Runs `scontrol WORDS JOBID` for at most `limit_ms`; `words` is ended by NULL. `done` comes once,
 * from the loop; the result is borrowed for the call, and the run is gone already. */
struct scontrol *scontrol_start(struct job *job, const char *const *words, int64_t limit_ms,
                                void (*done)(void *context, const struct discovery_result *result),
                                void *context);
void scontrol_cancel(struct scontrol *scontrol); /* kills it; accepts NULL */
