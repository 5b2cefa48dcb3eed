/* SPDX-License-Identifier: Apache-2.0 */
/* The result of a job: its exit status, the cause, and one line that explains both. */
#pragma once

#include <stdbool.h>

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
