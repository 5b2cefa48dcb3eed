/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a job, after its teardown (teardown.h). */
#pragma once

#include "driver/job/job.h"

/*
 * finish.c: the last steps of a job. Agents that have ended their workers get QUIT; when all are
 * gone, there is a verdict; when all output is written, the loop stops.
 */

/* For job->advance: takes the next step if its time has come. */
void finish_advance(struct job *job);

/*
 * The same file is the only writer of job->verdict. The kind of the job judges its workers and
 * hosts. If the first failure is a consequence, blame.h names the worker that is most likely the
 * cause. Three things override that: a warning of the scheduler, a queue that refused the job, and
 * output that could not be delivered.
 */

/* The job is over. Called again if the queue refuses the job. */
void verdict_make(struct job *job);

/* The output failed after that, while the report was written: success becomes a failure. */
void verdict_note_output(struct job *job);

/*
 * Also there, --slurm-requeue: `scontrol requeue` for our own Slurm job, as the very last step.
 * Slurm then sends TERM to everything in the job, including the driver, which ignores it by then.
 */

struct requeue {
    enum { REQUEUE_NO, REQUEUE_WRITING, REQUEUE_ASKING } stage;
    char *refused; /* why Slurm did not requeue the job; NULL */
};

/* If a warning of the scheduler wants it, waits in the loop for scontrol to end, at most 10 s.
 * Everything written before has reached its file first, if the file server permits. -1: Slurm did
 * not requeue the job, and the next verdict says why. */
int requeue_run(struct job *job);
bool requeue_is_under_way(const struct job *job);

/*
 * orphans.c: the processes that a dead agent leaves on this machine. The driver is a subreaper
 * above its local agents, so these processes become its children. The driver kills and reaps them
 * (D6). It spares live agents and their descendants.
 */

/* Kills from the loop until only live agents remain, at most every 20 ms however often it is
 * called. */
void orphans_sweep(const struct job *job);

/* Without the loop, at the very end: kills and reaps all our descendants, for at most
 * `limit_ms`. false: some could not be killed. */
bool orphans_end(const struct job *job, int64_t limit_ms);
