/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user's signals.
 *
 * INT, TERM, HUP, QUIT go to the workers as they are and end the job: after the grace what is left
 * is killed. A second one asks with TERM, a third kills at once. USR1 and USR2 are only passed on.
 * TSTP stops the workers (with SIGSTOP: in sessions of their own they ignore TSTP), then ourselves;
 * CONT resumes both; no deadline runs meanwhile (D5). WINCH tells the size of the terminal to the
 * rank with --pty. A signal that was ignored when we started (nohup) stays ignored.
 */
#pragma once

#include "driver/job.h"

struct user_signals *user_signals_create(struct job *job, struct error *err);
void user_signals_destroy(struct user_signals *signals);

/* An agent has stopped its workers. */
void user_signals_suspended(struct job *job);

/* An agent was asked by `signal` to end: the same as if we had been. */
void user_signals_end(struct job *job, int signal);
