/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection to the control socket: requests in, one on a line, and their answers out. It reads
 * the next request when the client has taken the answer to the one before. It closes the connection
 * when the client closes it, sends a line beyond CONTROL_LINE_MAX, or does nothing for
 * CONTROL_IDLE_MS.
 */
#pragma once

#include "driver/control/request.h"
#include "io/loop.h"

#define CONTROL_LINE_MAX ((size_t)65536)
#define CONTROL_IDLE_MS 10000

struct control_peer;

/* Takes `fd` over. `gone` comes once, from the loop, unless the owner destroys the peer first.
 * After `gone` the owner destroys it, at once or later. */
struct control_peer *
control_peer_create_take(struct loop *loop, int fd, const struct control_ops *ops,
                         void *ops_context, void (*gone)(void *context, struct control_peer *peer),
                         void *context);
void control_peer_destroy(struct control_peer *peer); /* accepts NULL */
