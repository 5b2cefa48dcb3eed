/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/messages.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define INSIDE 248

struct block {
    uint64_t length;
    char bytes[INSIDE];
};

static size_t inside(size_t length)
{
    return length < INSIDE ? length : INSIDE;
}

static enum hvd_status too_long(size_t length, const struct buf *buf, struct error *err)
{
    error_set(err, "the messages have %zu bytes, and the limit is %zu", length, buf->limit);
    return HVD_ERR_ENGINE;
}

static enum hvd_status send_message(const struct message_link *link, struct engine_comm *comm,
                                    const char *message, size_t length, int64_t timeout_ms,
                                    struct error *err)
{
    struct block block = {.length = length};
    size_t first = inside(length);
    if (first > 0)
        memcpy(block.bytes, message, first);
    enum hvd_status status =
        link->send(comm, &block, offsetof(struct block, bytes) + first, timeout_ms, err);
    if (status == HVD_OK && length > first)
        status = link->send(comm, message + first, length - first, timeout_ms, err);
    return status;
}

/* At the root, whose own message is complete: writes the sizes, and the sum of them. */
static enum hvd_status receive_blocks(const struct message_link *link, struct engine_comm *comm,
                                      size_t size, struct block *blocks, size_t *lengths,
                                      size_t *total, int64_t timeout_ms, struct error *err)
{
    size_t *offsets AUTO_FREE = mem_array(size, sizeof *offsets);
    size_t *rooms AUTO_FREE = mem_array(size, sizeof *rooms);
    for (size_t i = 0; i < size; i++) {
        offsets[i] = i * sizeof *blocks;
        rooms[i] = sizeof *blocks;
    }
    enum hvd_status status =
        link->receive_all(comm, blocks, size * sizeof *blocks, offsets, rooms, timeout_ms, err);
    *total = lengths[0];
    for (size_t i = 1; i < size && status == HVD_OK; i++) {
        lengths[i] = blocks[i].length;
        *total += lengths[i];
    }
    return status;
}

/* Copies what the blocks have into `to`, and receives the rest there. */
static enum hvd_status receive_rests(const struct message_link *link, struct engine_comm *comm,
                                     size_t size, const struct block *blocks, const size_t *lengths,
                                     char *to, size_t total, int64_t timeout_ms, struct error *err)
{
    size_t at = lengths[0];
    size_t *offsets AUTO_FREE = mem_array(size, sizeof *offsets);
    size_t *rooms AUTO_FREE = mem_array(size, sizeof *rooms);
    for (size_t i = 1; i < size; i++) {
        size_t first = inside(lengths[i]);
        if (first > 0)
            memcpy(to + at, blocks[i].bytes, first);
        offsets[i] = at + first;
        rooms[i] = lengths[i] - first;
        at += lengths[i];
    }
    return link->receive_all(comm, to, total, offsets, rooms, timeout_ms, err);
}

enum hvd_status messages_gather(const struct message_link *link, struct engine_comm *comm, int rank,
                                int size, const void *message, size_t length, struct buf *all,
                                size_t *lengths, int64_t timeout_ms, struct error *err)
{
    if (rank != 0)
        return send_message(link, comm, message, length, timeout_ms, err);
    struct block *blocks AUTO_FREE = mem_array((size_t)size, sizeof *blocks);
    size_t total;
    lengths[0] = length;
    enum hvd_status status =
        receive_blocks(link, comm, (size_t)size, blocks, lengths, &total, timeout_ms, err);
    if (status != HVD_OK)
        return status;
    buf_clear(all);
    char *to = buf_reserve(all, total);
    if (to == NULL)
        return too_long(total, all, err);
    if (length > 0)
        memcpy(to, message, length);
    status = receive_rests(link, comm, (size_t)size, blocks, lengths, to, total, timeout_ms, err);
    if (status == HVD_OK)
        buf_commit(all, total);
    return status;
}

enum hvd_status messages_broadcast(const struct message_link *link, struct engine_comm *comm,
                                   int rank, struct buf *message, int64_t timeout_ms,
                                   struct error *err)
{
    struct block block = {.length = message->length};
    if (rank == 0 && message->length > 0)
        memcpy(block.bytes, buf_text(message), inside(message->length));
    enum hvd_status status = link->broadcast(comm, &block, sizeof block, timeout_ms, err);
    if (status != HVD_OK)
        return status;
    size_t first = inside(block.length), rest = block.length - first;
    if (rank == 0)
        return rest == 0 ? HVD_OK
                         : link->broadcast(comm, (char *)buf_text(message) + first, rest,
                                           timeout_ms, err);
    buf_clear(message);
    char *to = buf_reserve(message, block.length);
    if (to == NULL)
        return too_long(block.length, message, err);
    memcpy(to, block.bytes, first);
    if (rest > 0)
        status = link->broadcast(comm, to + first, rest, timeout_ms, err);
    if (status == HVD_OK)
        buf_commit(message, block.length);
    return status;
}
