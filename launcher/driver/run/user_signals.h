/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user's signals.
 *
 * What the workers get instead, and which signal is a warning: model/exit/signal_rules.h,
 * warning.h. The same signal from a scheduler to us and to the agents counts once
 * (model/exit/signal_round.h).
 *
 * INT, TERM, HUP, QUIT go to the workers as they are and end the job: after the grace what is left
 * is killed. A second one asks with TERM, a third kills at once. USR1 and USR2 are only passed on.
 * TSTP stops the workers (with SIGSTOP: in sessions of their own they ignore TSTP), then ourselves;
 * CONT resumes both (suspension.h). WINCH tells the size of the terminal to the
 * rank with --pty. A signal that was ignored when we started (nohup) stays ignored.
 */
#pragma once

#include "driver/job/agent_frame.h"
#include "driver/job/job.h"

struct user_signals *user_signals_create(struct job *job, struct error *err);
void user_signals_destroy(struct user_signals *signals);

/* The user wants the end of the job. */
void user_signals_end(struct job *job, int signal);

/* The agent of some node has got a signal from outside: the same as if we had, once for all.
 * TERMINATE: TERM, in a job that ends with any of its nodes. SIGNALLED: the one that it names. */
int user_signals_terminate(struct job *job, struct node_link *node,
                           const struct agent_frame *frame);
int user_signals_frame(struct job *job, struct node_link *node, const struct agent_frame *frame);
