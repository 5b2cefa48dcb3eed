/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection to the control socket: requests in, a line each, their answers out. The next
 * request waits until the answer before it has been taken. A connection is closed when its client
 * has gone, sent a line beyond CONTROL_LINE_MAX, or did nothing for CONTROL_IDLE_MS.
 */
#pragma once

#include "driver/control/request.h"
#include "io/loop.h"

#define CONTROL_LINE_MAX ((size_t)65536)
#define CONTROL_IDLE_MS 10000

struct control_peer;

/* Takes `fd` over. `gone` comes once, from the loop, unless it is destroyed before; the owner
 * destroys it then, or later. */
struct control_peer *
control_peer_create_take(struct loop *loop, int fd, const struct control_ops *ops,
                         void *ops_context, void (*gone)(void *context, struct control_peer *peer),
                         void *context);
void control_peer_destroy(struct control_peer *peer); /* accepts NULL */
