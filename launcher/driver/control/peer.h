/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection to the control socket: requests in, one on a line, and their answers out. It reads
 * the next request when the client has taken the answer to the one before. It closes the connection
 * when the client closes it, sends a line beyond CONTROL_LINE_MAX, or does nothing for
 * CONTROL_IDLE_MS. A client that waits for the end of the job may do nothing for as long as it
 * likes, and must not send anything more.
 */
#pragma once

#include "driver/control/request.h"
#include "io/loop.h"

#define CONTROL_LINE_MAX ((size_t)65536)
#define CONTROL_IDLE_MS 10000

struct control_peer;

struct control_peer_owner {
    /* Comes once, from the loop, unless the owner destroys the peer first. After it the owner
     * destroys the peer, at once or later. */
    void (*gone)(void *context, struct control_peer *peer);
    bool (*may_wait)(void *context); /* for the end of the job; false: too many do */
};

/* Takes `fd` over. `by_root`: the client is a process of root. */
struct control_peer *control_peer_create_take(struct loop *loop, int fd, bool by_root,
                                              const struct control_ops *ops, void *ops_context,
                                              const struct control_peer_owner *owner,
                                              void *context);
bool control_peer_waits(const struct control_peer *peer);

/* Answers a client that waits. It does not block; a client that does not read may miss the end. */
void control_peer_finish(struct control_peer *peer, const json_t *end);
void control_peer_destroy(struct control_peer *peer); /* accepts NULL */
