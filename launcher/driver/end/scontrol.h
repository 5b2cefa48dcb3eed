/* SPDX-License-Identifier: Apache-2.0 */
/* One run of Slurm's scontrol for the job that we are in. The loop goes on meanwhile. */
#pragma once

#include "driver/job/job.h"
#include "io/program.h"
#include "model/allocation/slurm_job.h"

/* Where scontrol is; NULL and `err`: it is not in PATH. The caller frees it. */
char *scontrol_find(struct error *err);

/* Runs `scontrol WORDS JOBID` for at most `limit_ms`; `words` is ended by NULL. For `done` and the
 * result see program_start(). */
struct program *scontrol_start(struct job *job, const char *const *words, int64_t limit_ms,
                               void (*done)(void *context, const struct program_result *result),
                               void *context);
