/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What other commands can see of a job and do with it: the control socket and the record
 * (driver/control/). Both are optional: a job runs without them.
 *
 * Most jobs are tests that end soon, and a job must start as fast as it can. So the socket appears
 * JOB_CONTROL_AFTER_MS after the job has begun. A job that has ended by then only gets the record
 * of its end.
 */
#pragma once

#include "driver/job/job.h"

#define JOB_CONTROL_AFTER_MS 50

struct job_control;

struct job_control *job_control_create(struct job *job);

/* A worker has started or ended. Tells a launcher that detaches as soon as all have started. */
void job_control_look(struct job_control *control); /* accepts NULL */

/* The job has its verdict: writes the record of the end, and answers those that wait for it. */
void job_control_end(struct job_control *control); /* accepts NULL */
/* The folder for evidence of jobs without --evidence, which the caller frees; NULL: there is none.
 */
char *job_control_evidence_place(void);
void job_control_destroy(struct job_control *control); /* accepts NULL */
