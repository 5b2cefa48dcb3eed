/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The port that agents dial back to, on all addresses of this machine, IPv6 and IPv4. It accepts
 * connections, a few in each turn of the loop, so that thousands of agents may come at once.
 */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

#include "base/error.h"
#include "io/loop.h"

struct dial_listener_ops {
    /* The descriptor is the receiver's. */
    void (*accepted)(void *context, int fd, const struct sockaddr_storage *address);
    /* No descriptor is free for a connection that waits. The listener tries again. Called when that
     * begins, and with `for_long` each time that strangers have had time to leave theirs. */
    void (*full)(void *context, const char *cause, bool for_long);
};

struct dial_listener;

/* Borrows `ops`. `port` 0: any that is free. NULL: this machine does not have the port for it. */
struct dial_listener *dial_listener_create(struct loop *loop, int port,
                                           const struct dial_listener_ops *ops, void *context,
                                           struct error *err);
void dial_listener_destroy(struct dial_listener *listener); /* accepts NULL */
int dial_listener_port(const struct dial_listener *listener);
