/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --slurm-requeue: `scontrol requeue` for the job that we are in, as the last thing of all. Slurm
 * then sends TERM to all that belongs to the job, us included, which is not listened to any more.
 */
#pragma once

#include "driver/job/job.h"

/* Waits for the end of scontrol, 10 s at most, in the loop; whatever was written before is out
 * first (the file server permitting). -1: the job is not in the queue, and the verdict
 * says why. */
int requeue_run(struct job *job);
