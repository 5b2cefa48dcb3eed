/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --slurm-requeue: `scontrol requeue` for our own Slurm job, as the very last step. Slurm then
 * sends TERM to everything in the job, including the driver, which ignores it by then.
 */
#pragma once

#include "driver/job/job.h"

/* Waits in the loop for scontrol to end, at most 10 s. Everything written before has reached its
 * file first, if the file server permits. -1: Slurm did not requeue the job, and the verdict
 * says why. */
int requeue_run(struct job *job);
