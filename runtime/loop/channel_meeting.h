/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the root (set rank 0) and the members of a process set connect to each other, for their
 * control channel.
 *
 * A member tries the points of the invitation in turn. The root waits for the members. It listens
 * only at the addresses that it tells them: those of the interface for the job's traffic, loopback
 * included. Without the name of an interface, these are all addresses but loopback. Members on its
 * own host use a Unix socket, which takes half of the time of loopback.
 *
 * Anyone who can reach these addresses, or has a process on the host, can connect. Before such a
 * guest has proved that it is a member, it has two seconds, and it can hold no more than its own
 * descriptor. If there are too many guests, or no descriptor is free, the one that came first has
 * to go: a member comes again.
 */
#pragma once

#include "engine/messages.h"

/* The same for the root and the members. */
struct channel_setup {
    struct message_set set; /* its time-out is for all that the opening waits for */
    const int *ranks;       /* the members' global ranks, for errors */
    const char *interface;  /* the root's addresses are those of it; NULL: of all */
    int stop;               /* a descriptor: when it is readable, the opening fails at once */
};

/* Fills `fds`, which are -1, with a connection for each member from set rank 1 on. They are not
 * blocking. On failure some may be open. HVD_ERR_PEER_LOST without an error: `stop` is readable. */
enum hvd_status root_meet(const struct channel_setup *setup, int *fds, struct error *err);

/* `fd`: -1 before; then a connection to the root, not blocking. HVD_ERR_PEER_LOST without an error:
 * `stop` is readable. */
enum hvd_status member_meet(const struct channel_setup *setup, int *fd, struct error *err);
