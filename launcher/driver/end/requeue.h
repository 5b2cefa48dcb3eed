/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --slurm-requeue: `scontrol requeue` for our own Slurm job, as the very last step. Slurm then
 * sends TERM to everything in the job, including the driver, which ignores it by then.
 */
#pragma once

#include "driver/job/job.h"

struct requeue {
    enum { REQUEUE_NO, REQUEUE_WRITING, REQUEUE_ASKING } stage;
    char *refused; /* why Slurm did not requeue the job; NULL */
};

/* If a warning of the scheduler wants it, waits in the loop for scontrol to end, at most 10 s.
 * Everything written before has reached its file first, if the file server permits. -1: Slurm did
 * not requeue the job, and the next verdict says why. */
int requeue_run(struct job *job);
bool requeue_is_under_way(const struct job *job);
const char *requeue_refused(const struct job *job); /* why; NULL: it was not, or was not asked */
