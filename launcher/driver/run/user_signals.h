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
 *
 * `hvdrun stop` counts as INT. `hvdrun signal` sends workers a signal that means nothing to the job
 * itself.
 *
 * With --on-hangup detach, the job does not end when its terminal or the reader of its output goes
 * away. It goes on without a terminal, and `hvdrun attach` shows its output.
 */
#pragma once

#include "driver/job/agent_frame.h"
#include "driver/job/job.h"

/* The agent of a node got a signal from outside: the same as if we had got it, but only once. In a
 * job that ends with any of its nodes, TERMINATE counts as TERM. */
int user_signals_terminate(struct job *job, struct node_link *node,
                           const struct agent_frame *frame);

/* Of standard input, output and error, those that are a terminal become /dev/null; with
 * `output_too` also any other output and error. -1: there is no /dev/null. */
int hangup_leave(bool output_too);

/* The reader of stdout is gone, such as an ssh without a terminal. True: the job goes on. */
bool hangup_takes_reader(struct job *job);
