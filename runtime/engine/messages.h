/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of variable size, for engines that have operations of known size.
 *
 * A message begins with a block of its length and of the bytes that fit. The rest follows, if there
 * is one. So a small message, which is the usual one, travels at once.
 */
#pragma once

#include "engine/engine.h"

/* What the engine provides. `timeout_ms` is that of the message. */
struct message_link {
    /* To set rank 0. Messages of one rank arrive in their order. */
    enum hvd_status (*send)(struct engine_comm *comm, const void *bytes, size_t length,
                            int64_t timeout_ms, struct error *err);
    /* From each other rank i at most rooms[i] bytes, to base + offsets[i], where `base` has
     * `length` bytes. Nothing is received from a rank whose room is 0. */
    enum hvd_status (*receive_all)(struct engine_comm *comm, void *base, size_t length,
                                   const size_t *offsets, const size_t *rooms, int64_t timeout_ms,
                                   struct error *err);
    /* From set rank 0. */
    enum hvd_status (*broadcast)(struct engine_comm *comm, void *data, size_t bytes,
                                 int64_t timeout_ms, struct error *err);
};

/* As in engine/engine.h, for a set of `size` ranks. */
enum hvd_status messages_gather(const struct message_link *link, struct engine_comm *comm, int rank,
                                int size, const void *message, size_t length, struct buf *all,
                                size_t *lengths, int64_t timeout_ms, struct error *err);
enum hvd_status messages_broadcast(const struct message_link *link, struct engine_comm *comm,
                                   int rank, struct buf *message, int64_t timeout_ms,
                                   struct error *err);
