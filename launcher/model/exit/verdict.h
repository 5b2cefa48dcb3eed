/* SPDX-License-Identifier: Apache-2.0 */
/* The result of a job: its exit status, the cause, and one line that explains both. And what ends a
 * job from outside its workers. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define EXIT_CAUSE_LIST(X)                  \
    X(CAUSE_NONE, "none")                   \
    X(CAUSE_EXIT, "exit")                   \
    X(CAUSE_SIGNAL, "signal")               \
    X(CAUSE_ABORT, "abort")                 \
    X(CAUSE_EXEC, "exec")                   \
    X(CAUSE_NODE_LOST, "node-lost")         \
    X(CAUSE_TIMEOUT, "timeout")             \
    X(CAUSE_START_TIMEOUT, "start-timeout") \
    X(CAUSE_LAUNCHER, "launcher")           \
    X(CAUSE_INTERRUPTED, "interrupted")     \
    X(CAUSE_STOPPED, "stopped")             \
    X(CAUSE_NO_STATUS, "no-status")         \
    X(CAUSE_REQUEUED, "requeued")

#define EXIT_ROLE_LIST(X)              \
    X(ROLE_NONE, "none")               \
    X(ROLE_OK, "ok")                   \
    X(ROLE_CAUSE, "cause")             \
    X(ROLE_FAILED, "failed")           \
    X(ROLE_CONSEQUENCE, "consequence") \
    X(ROLE_LOST, "lost")               \
    X(ROLE_NOT_STARTED, "not-started")

#define EXIT_ENUM(name, text) name,
enum exit_cause { EXIT_CAUSE_LIST(EXIT_ENUM) };
enum exit_role { EXIT_ROLE_LIST(EXIT_ENUM) }; /* the role of one worker in the verdict */
#undef EXIT_ENUM

const char *exit_cause_name(enum exit_cause cause);
const char *exit_role_name(enum exit_role role);

struct verdict {
    int status; /* 0..255, the launcher's exit status */
    enum exit_cause cause;
    int seat;               /* of the causal worker, in a static job its rank; -1: none */
    int node;               /* that worker's node or the lost node; -1: none */
    bool tie;               /* others failed at the same moment, as far as clocks can tell */
    bool likely;            /* `seat` is most likely the cause, and `first_seat` ended first */
    int first_seat;         /* with `likely` */
    char explanation[1280]; /* one line */
};

/* Sets a verdict that names no worker and no node. `explanation` is cut to fit; NULL: none. */
void verdict_set(struct verdict *out, int status, enum exit_cause cause, const char *explanation);

/*
 * What ends a job from outside its workers: a failure of the launcher (a time limit, a host that
 * cannot be reached...), or an interruption, which is a signal to the launcher or the request of
 * another command. Of each kind the first one counts. Pure; all times are nanoseconds on the
 * driver's monotonic clock.
 *
 * Every kind of job has these two. A static job compares them with the exits of its ranks
 * (model/exit/policy.h).
 */
struct exit_outside { /* all zero is ready */
    struct {
        int status; /* 0: none */
        int64_t when_ns;
        char *text; /* the whole explanation; owned */
    } launcher;
    struct {
        int signal; /* 0: none */
        int64_t when_ns;
        int64_t round_ns; /* a scheduler sends the signal to every process of the job, in any order:
                             a rank that it killed that much earlier did not fail */
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

/* One of the two has happened. */
bool exit_outside_ends(const struct exit_outside *outside);

/* The verdict on the launcher's failure; there is one. */
void exit_outside_blame_launcher(const struct exit_outside *outside, struct verdict *out);

/* The verdict on the interruption; there is one. */
void exit_outside_blame_interruption(const struct exit_outside *outside, struct verdict *out);

/* The verdict on a signal. */
void exit_outside_blame_signal(int signal, struct verdict *out);
