/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first local agents: on this machine, forked without exec, on a socketpair (D1).
 *
 * Must be started before the driver has an event loop, a thread, or anything else that does not
 * survive a fork; the first thing the child does is setsid(), and to close every descriptor but its
 * own. The driver is a subreaper, so whatever a dying agent leaves behind becomes its child. They
 * come up at once, so they are no calls of a transport; those needed later are (local_exec in
 * transport/exec/exec.h).
 */
#pragma once

#include "transport/transport.h"

struct local_agent {
    /* The agent's main function, given from above; returns the child's exit status. */
    int (*run)(void *context, int fd);
    void *context;
};

int local_fork(const struct local_agent *agent, const char *host, struct transport_stream *stream,
               struct error *err);
