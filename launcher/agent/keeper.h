/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper of a remote agent (D6): the process as which hvdrun-agent was started. It forks the
 * agent proper and is the subreaper above it and all its workers. It does next to nothing, so
 * little in it can fail.
 *
 *   the agent has ended              kill and reap all that is below us, sweep, exit as it did
 *   it is silent beyond its limit    SIGKILL to it, then the same: it may be stopped, or hang
 *   the stream was hung up, and it
 *   still runs after its grace       the same
 *   TERM, INT, HUP to the keeper     passed on to the agent
 *
 * A keeper that was itself stalled (its waits took much too long) restarts all clocks. When the
 * keeper is killed, the line between it and the agent closes. The agent then ends its workers as if
 * the driver were lost. An agent that ends sends SIGCONT to its keeper, which may be stopped.
 */
#pragma once

#include <signal.h>
#include <stdint.h>

#include "base/error.h"

#define KEEPER_MARGIN_MS 5000

/* What the agent sends at least every second, on a line that keeps message boundaries. */
struct keeper_beat {
    int64_t silence_ms; /* the agent may be silent so long; it gives up the driver earlier */
    int64_t grace_ms;   /* the agent may take so long to end when the driver is gone */
};

struct keeper_config {
    int stream_fd;        /* watched for a hang-up, never read; closed when the agent has ended */
    int agent_fds[2];     /* for the agent only: closed here once it runs */
    const sigset_t *mask; /* for the agent */
    /* Called in the child; its value becomes the exit status. */
    int (*agent)(void *context, int line_fd);
    void *context;
};

/* The exit status of the agent, or 128 + its signal; -1: it could not be started. */
int keeper_run(const struct keeper_config *config, struct error *err);
