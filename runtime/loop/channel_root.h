/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The root of a process set waits for the members. It listens only at the addresses that it tells
 * them: those of the interface for the job's traffic, loopback included. Without the name of an
 * interface, these are all addresses but loopback.
 *
 * Anyone who can reach these addresses can connect. Before such a guest has proved that it is a
 * member, it has GUEST_MS, and it can hold no more than its own descriptor. If there are too many
 * guests, or no descriptor is free, the one that came first has to go: a member comes again.
 */
#pragma once

#include "loop/channel_setup.h"

enum { GUEST_MS = 2000, STRANGERS_MAX = 256 };

/* Fills `fds`, which are -1, with a connection for each member from set rank 1 on. They are not
 * blocking. On failure some may be open. HVD_ERR_PEER_LOST without an error: `stop` is readable. */
enum hvd_status root_meet(const struct channel_setup *setup, int *fds, struct error *err);
