/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first local agents: on this machine, forked without exec, on a socketpair (D1).
 *
 * Fork them before the driver has an event loop, a thread, or anything else that does not survive a
 * fork. The child first calls setsid() and closes every descriptor but its own. The driver is a
 * subreaper, so whatever a dying agent leaves behind becomes its child. These agents come up at
 * once, so they are not calls of a transport. Local agents that are needed later are (local_exec in
 * transport/exec/exec.h).
 */
#pragma once

#include "transport/transport.h"

struct local_agent {
    /* The agent's main function, from the caller; returns the child's exit status. */
    int (*run)(void *context, const char *host, int fd);
    void *context;
};

int local_fork(const struct local_agent *agent, const char *host, struct transport_stream *stream,
               struct error *err);
