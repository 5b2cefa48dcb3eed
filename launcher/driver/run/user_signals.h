/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user's signals.
 *
 * model/exit/signal_rules.h and warning.h decide what the workers get instead, and which signal is
 * a warning. If a scheduler sends the same signal to us and to the agents, it counts once
 * (model/exit/signal_rules.h).
 *
 * INT, TERM, HUP and QUIT go to the workers as they are and end the job. After the grace period the
 * remaining workers are killed. A second signal sends TERM, a third one kills at once. USR1 and
 * USR2 are only passed on. TSTP stops the workers (with SIGSTOP, because they ignore TSTP in their
 * own sessions), then the launcher; CONT resumes both (suspension.h). WINCH passes the size of the
 * terminal on to the rank with --pty. A signal that was ignored when the launcher started (nohup)
 * stays ignored.
 */
#pragma once

#include "driver/job/agent_frame.h"
#include "driver/job/job.h"

struct user_signals *user_signals_create(struct job *job, struct error *err);
void user_signals_destroy(struct user_signals *signals);

/* The user ends the job. */
void user_signals_end(struct job *job, int signal);
/* The same for `hvdrun stop`, which counts as INT. `by`: the command and the user. -1: the usual
 * grace period. */
void user_signals_stop(struct job *job, const char *by, int64_t grace_ms);

/* `hvdrun signal`: sends it to the workers of these ranks ("0,4-7"), or to all (NULL). It means
 * nothing to the job itself. `by`: the command and the user. -1: one of the ranks does not run, or
 * does not exist. */
int user_signals_send(struct job *job, int signal, const char *by, const char *ranks,
                      struct error *err);

/* The agent of a node got a signal from outside: the same as if we had got it, but only once.
 * TERMINATE: TERM, in a job that ends with any of its nodes. SIGNALLED: the signal that the
 * frame names. */
int user_signals_terminate(struct job *job, struct node_link *node,
                           const struct agent_frame *frame);
int user_signals_frame(struct job *job, struct node_link *node, const struct agent_frame *frame);
