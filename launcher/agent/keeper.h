/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper of a remote agent (D6): the process that hvdrun-agent was started as. It forks the
 * agent proper, stands above it and all its workers as a subreaper, and does next to nothing, so
 * that there is next to nothing in it that could fail.
 *
 *   the agent has ended              kill what is left below us, reap it, sweep, exit as it did
 *   it is silent for its own limit   SIGKILL to it, then the same. It may be stopped, or hang
 *   the stream was hung up and it
 *   is still there after its grace   the same
 *   TERM, INT, HUP to the keeper     passed on to the agent
 *
 * A keeper that was itself stalled (its waits took much too long) starts all clocks again. When
 * the keeper is killed, the agent sees the end of the line between them and ends its workers as if
 * the driver were lost.
 */
#pragma once

#include <signal.h>
#include <stdint.h>

#include "base/error.h"

#define KEEPER_MARGIN_MS 5000

/* What the agent says, at least every second, on a line that keeps messages apart. */
struct keeper_beat {
    int64_t silence_ms; /* so long it may be silent: the driver is given up before */
    int64_t grace_ms;   /* so long it may take to end when the driver is gone */
};

struct keeper_config {
    int stream_fd; /* whose hang-up is watched for; never read; closed when the agent has ended */
    int agent_fds[2];     /* the agent's alone: closed here once it runs */
    const sigset_t *mask; /* for the agent */
    /* In the child, which ends with what it returns. */
    int (*agent)(void *context, int line_fd);
    void *context;
};

/* The exit status of the agent, or 128 + its signal; -1: it could not be started. */
int keeper_run(const struct keeper_config *config, struct error *err);
