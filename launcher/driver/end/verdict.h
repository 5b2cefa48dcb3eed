/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only writer of job->verdict. The kind of the job judges its workers and hosts. If the first
 * failure is a consequence, blame.h names the worker that is most likely the cause. Three things
 * override that: a warning of the scheduler, a queue that refused the job, and output that could
 * not be delivered.
 */
#pragma once

#include "driver/job/job.h"

/* The job is over. Called again if the queue refuses the job. */
void verdict_make(struct job *job);

/* The exit status as far as it is known: all workers have ended, but the job is not over. */
int verdict_status_so_far(const struct job *job);

/* The output failed after that, while the report was written: success becomes a failure. */
void verdict_note_output(struct job *job);
