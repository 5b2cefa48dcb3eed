/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a job. Each way to it records what happened and then lets the agents end their
 * workers: a first signal, the grace, KILL, until nothing is left.
 */
#pragma once

#include "driver/job/job.h"

#define GRACE_AFTER_FAILURE_MS 5000
#define GRACE_AFTER_SIGNAL_MS 30000
#define GRACE_OF_LEFTOVERS_MS 1000

struct teardown;

struct teardown *teardown_create(struct job *job);
void teardown_destroy(struct teardown *teardown); /* accepts NULL */

/* --grace, or what is usual for this kind of end. */
int64_t teardown_grace(const struct job *job, int64_t usual_ms);

/* Starts the end, or sharpens one under way (a stronger signal, a shorter grace). */
void teardown_begin(struct job *job, int signal, int64_t grace_ms);

/* All ranks are FINISHED: ends the processes that they left behind. */
void teardown_leftovers(struct job *job);

/* Something has failed: the usual end of that. */
void teardown_after_failure(struct job *job);

/* The launcher itself gives up. `text` explains it; STATUS_LAUNCHER when `status` is 0. */
void teardown_launcher(struct job *job, int status, const char *text);

/* Milliseconds since the end began; INT64_MAX: it has not begun. */
int64_t teardown_age_ms(const struct job *job);

/* The agents were told to quit: they get `limit_ms` for it. */
void teardown_expect_quit(struct job *job, int64_t limit_ms);
/* No agent is left. */
void teardown_over(struct job *job);

/* The job is suspended, and the agents get their time anew after that. */
void teardown_pause(struct job *job, bool paused);

/* Waits for no agent any more: the user has asked again after the workers were killed. */
void teardown_give_up(struct job *job);
