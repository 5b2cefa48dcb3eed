/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The local transport: an agent on this machine, forked without exec, on a socketpair (D1).
 *
 * Must be started before the driver has an event loop, a thread, or anything else that does not
 * survive a fork; the first thing the child does is setsid(), and to close every descriptor but its
 * own. The driver is a subreaper, so whatever a dying agent leaves behind becomes its child.
 */
#pragma once

#include "transport/transport.h"

struct transport_local {
    /* The agent's main function, given from above; returns the child's exit status. */
    int (*agent)(void *context, int fd);
    void *context;
};

struct transport transport_local(struct transport_local *local); /* borrows `local` */
