/* SPDX-License-Identifier: Apache-2.0 */
/* The job while its workers run. Its store of the rendezvous: job_rendezvous.h. */
#pragma once

#include "driver/job/job.h"

/*
 * user_signals.c: the user's signals.
 *
 * model/exit/signal_rules.h and warning.h decide what the workers get instead, and which signal is
 * a warning. If a scheduler sends the same signal to us and to the agents, it counts once
 * (model/exit/signal_rules.h).
 *
 * INT, TERM, HUP and QUIT go to the workers as they are and end the job. After the grace period the
 * remaining workers are killed. A second signal sends TERM, a third one kills at once. USR1 and
 * USR2 are only passed on. TSTP stops the workers (with SIGSTOP, because they ignore TSTP in their
 * own sessions), then the launcher; CONT resumes both. WINCH passes the size of the
 * terminal on to the rank with --pty. A signal that was ignored when the launcher started (nohup)
 * stays ignored.
 *
 * `hvdrun stop` counts as INT. `hvdrun signal` sends workers a signal that means nothing to the job
 * itself.
 *
 * With --on-hangup detach, the job does not end when its terminal or the reader of its output goes
 * away. It goes on without a terminal, and `hvdrun attach` shows its output.
 */

/* The agent of a node got a signal from outside: the same as if we had got it, but only once. In a
 * job that ends with any of its nodes, TERMINATE counts as TERM. */
int user_signals_terminate(struct job *job, struct node_link *node,
                           const struct agent_frame *frame);

/* Of standard input, output and error, those that are a terminal become /dev/null; with
 * `output_too` also any other output and error. -1: there is no /dev/null. */
int hangup_leave(bool output_too);

/* The reader of stdout is gone, such as an ssh without a terminal. True: the job goes on. */
bool hangup_takes_reader(struct job *job);

/*
 * suspension.c: a suspended job (Ctrl-Z): the workers stop, then the launcher stops too. All time
 * limits stop meanwhile (D5). They also stop while a debugger may hold a rank: then workers and
 * launcher go on.
 */

/* The user suspends the job. Returns at once; the launcher stops when all agents have answered. */
void suspension_begin(struct job *job);
void suspension_end(struct job *job);

/* A debugger holds a rank, or may at any time; or none does any more. */
void suspension_debugged(struct job *job, bool debugged);

/*
 * time_limit.c: --timeout, how long the workers may run. After that time the driver raises an
 * incident (job/part.h), and the job ends.
 */

void time_limit_begin(struct job *job); /* it runs */

/*
 * stdin_feed.c: the standard input of the job. It is read only as far as the ranks that get it have
 * granted credit. So a rank that does not read costs no memory, and nothing is read ahead of need.
 * With --stdin all the slowest rank sets the pace. A terminal is read only in the foreground, so it
 * never stops a job in the background. A read error ends the job.
 */

/* The ranks of the present plan can read now; ends the feed of those before. */
void stdin_feed_begin(struct job *job);
void stdin_feed_stop(struct stdin_feed *feed); /* accepts NULL */

/*
 * job_lines.c: the lines of workers to their agents (docs/runtime.md), as the driver sees them. It
 * sends the ranks of the present epoch that have ended to the agents that have such a line. It
 * sends nothing to other agents, so a job without libhvd pays nothing. It prints what workers
 * report about stalls.
 */

/* The worker on this seat has ended; its record is written. */
void job_lines_rank_ended(struct job *job, int seat);
