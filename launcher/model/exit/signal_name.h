/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of signals, as users and schedulers write them: USR1, SIGUSR1, usr1, or the number. Pure.
 *
 *   PASSED   may be sent to the launcher, which passes it on to the workers; all may be on the
 *            left of --map-signal, be the --warn-signal, and reach an agent through a scheduler
 *   others   are known by name only: on the right of --map-signal, where SIGNAL_BARRED are refused
 */
#pragma once

#include <signal.h>
#include <stdbool.h>

#include "base/buf.h"

/* clang-format off */
#define SIGNAL_PASSED_LIST(X)                                                                      \
    X(SIGHUP) X(SIGINT) X(SIGQUIT) X(SIGTERM) X(SIGUSR1) X(SIGUSR2) X(SIGALRM) X(SIGVTALRM)        \
    X(SIGPROF) X(SIGURG) X(SIGIO) X(SIGPWR) X(SIGXCPU)
/* KILL ends the workers at once; the others stop and continue them without our knowledge. */
#define SIGNAL_BARRED_LIST(X)                                                                      \
    X(SIGKILL) X(SIGSTOP) X(SIGCONT) X(SIGTSTP) X(SIGTTIN) X(SIGTTOU) X(SIGCHLD)
/* clang-format on */

enum { SIGNAL_NUMBER_MAX = 64 };

int signal_number(const char *name);       /* 0: no signal has this name */
const char *signal_short_name(int number); /* "USR1"; NULL: it has no name */
bool signal_is_passed(int number);
bool signal_is_barred(int number);
bool signal_wants_end(
    int number); /* INT, TERM, HUP, QUIT: they end a job unless the settings say otherwise */

/* "HUP, INT, ...": the signals that may be passed on, for messages. */
const char *signal_passed_names(void);

/* Appends "exit status 3", or "exit status 137 (SIGKILL)": shells, sshd and hvdrun's keeper report
 * the signal that ended their child as 128 + its number. Pure. */
void status_text(int status, struct buf *out);
