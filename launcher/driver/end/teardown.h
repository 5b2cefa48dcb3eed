/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a job. Each way to it tells the exit policy what happened and then lets the agents end
 * their workers: a first signal, the grace, KILL, until nothing is left.
 */
#pragma once

#include "driver/job/job.h"

#define GRACE_AFTER_FAILURE_MS 5000
#define GRACE_AFTER_SIGNAL_MS 30000
#define GRACE_OF_STRAYS_MS 1000

/* --grace, or what is usual for this kind of end. */
int64_t teardown_grace(const struct job *job, int64_t usual_ms);

/* Starts the end, or sharpens one under way (a stronger signal, a shorter grace). */
void teardown_begin(struct job *job, int signal, int64_t grace_ms);

/* All ranks are FINISHED: whatever they left behind is ended. */
void teardown_strays(struct job *job);

/* After the job was suspended: the agents get their time anew. */
void teardown_resume(struct job *job);

/* Waits for no agent any more: the user has asked again after the workers were killed. */
void teardown_give_up(struct job *job);

/* The launcher itself gives up; `status` and `text` go to the exit policy. */
void teardown_launcher(struct job *job, int status, const char *text);
