/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ends a job from outside its workers: a failure of the launcher (a time limit, a host that
 * cannot be reached...), or an interruption, which is a signal to the launcher or the request of
 * another command. Of each kind the first one counts. Pure; all times are nanoseconds on the
 * driver's monotonic clock.
 *
 * Every kind of job has these two. A static job compares them with the exits of its ranks
 * (model/exit/policy.h).
 */
#pragma once

#include <stdint.h>

#include "model/exit/verdict.h"

struct exit_outside { /* all zero is ready */
    struct {
        int status; /* 0: none */
        int64_t when_ns;
        char *text; /* the whole explanation; owned */
    } launcher;
    struct {
        int signal; /* 0: none */
        int64_t when_ns;
        int64_t round_ns; /* it may have reached a rank that much earlier */
        char *stopped;    /* the whole explanation, if it was a request; owned; NULL: a signal */
    } interrupted;
};

void exit_outside_clear(struct exit_outside *outside);

/* A failure of the launcher: STATUS_TIMEOUT, STATUS_START_TIMEOUT, STATUS_LAUNCHER... `text` is the
 * whole explanation. */
void exit_outside_failed(struct exit_outside *outside, int status, int64_t when_ns,
                         const char *text);

/* A signal to the launcher began to end the job. Call it when the driver has set the deadline
 * after which it kills, because bad exits from then on do not start a teardown. */
void exit_outside_interrupted(struct exit_outside *outside, int signal, int64_t when_ns);

/* The same for a request of another command, which has the effect of that signal. `text` is the
 * whole explanation. */
void exit_outside_stopped(struct exit_outside *outside, int signal, int64_t when_ns,
                          const char *text);

/* A scheduler sends that signal to every process of the job, in any order. A rank that it killed
 * up to `round_ns` before the launcher got it did not fail. */
void exit_outside_signal_round(struct exit_outside *outside, int64_t round_ns);

/* One of the two has happened. */
bool exit_outside_ends(const struct exit_outside *outside);

/* The verdict on the launcher's failure; there is one. */
void exit_outside_blame_launcher(const struct exit_outside *outside, struct verdict *out);
/* The verdict on the interruption; there is one. */
void exit_outside_blame_interruption(const struct exit_outside *outside, struct verdict *out);
/* The verdict on a signal. */
void exit_outside_blame_signal(int signal, struct verdict *out);
