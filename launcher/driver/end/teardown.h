/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a job. Every way to end a job records the cause, and then the agents terminate their
 * workers: a first signal, the grace period, SIGKILL, until no process of the job remains.
 */
#pragma once

#include "driver/job/job.h"

#define GRACE_AFTER_FAILURE_MS 5000
#define GRACE_AFTER_SIGNAL_MS 30000
#define GRACE_OF_LEFTOVERS_MS 1000

/* --grace, or the default for this kind of end. */
int64_t teardown_grace(const struct job *job, int64_t usual_ms);

/* Starts the end, or shortens one that has begun (a stronger signal, a shorter grace period). */
void teardown_begin(struct job *job, int signal, int64_t grace_ms);

/* All ranks are FINISHED: terminates the processes that they left behind. */
void teardown_leftovers(struct job *job);

/* Ends the job after a failure. */
void teardown_after_failure(struct job *job);

/* The launcher itself failed. `text` is the explanation; status 0 means STATUS_LAUNCHER. */
void teardown_launcher(struct job *job, int status, const char *text);
/* The same because of what `node` has just said. The time is that at which it was heard: if its
 * agent then ends, the loss of the node is later, however busy this machine is. */
void teardown_told(struct job *job, const struct node_link *node, int status, const char *text);

/* Milliseconds since the end began; INT64_MAX: it has not begun. */
int64_t teardown_age_ms(const struct job *job);

/* The agents got QUIT and have `limit_ms` to exit. */
void teardown_expect_quit(struct job *job, int64_t limit_ms);
/* All agents have exited. */
void teardown_over(struct job *job);

/* Stops waiting for agents: the user has asked again after the workers were killed. */
void teardown_give_up(struct job *job);
