/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a link has still to send: bytes of its own, and blocks that several links send alike.
 *
 * A block exists once, however many queues hold it, and ends with its last holder. So an answer to
 * all agents costs the driver its size once, and not once for each agent. Blocks are not for
 * several threads.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "wire/frame.h"

struct shared_block {
    size_t holders;
    size_t length;
    uint8_t bytes[]; /* written before the block is shared, and not after */
};

struct shared_block *shared_block_create(size_t length);            /* one holder: the caller */
struct shared_block *shared_block_hold(struct shared_block *block); /* one holder more */
void shared_block_release(struct shared_block *block);              /* accepts NULL */

struct send_piece;

struct send_queue {
    struct buf own; /* in order, without the blocks between them */
    struct send_piece *first, **last;
    size_t assigned; /* own bytes that some block follows */
    size_t shared;   /* bytes of blocks */
    size_t limit;    /* for all bytes */
};

void send_queue_init(struct send_queue *queue, size_t limit);
void send_queue_clear(struct send_queue *queue);
void send_queue_destroy(struct send_queue *queue);

size_t send_queue_length(const struct send_queue *queue);

/* Makes room for `length` bytes at the end and returns where to write them; send_queue_commit()
 * says how many were written. NULL: over the limit. */
uint8_t *send_queue_reserve(struct send_queue *queue, size_t length);
void send_queue_commit(struct send_queue *queue, size_t length);

/* `length` bytes of the block from `offset`; the queue holds the block until they are consumed.
 * -1: over the limit. */
int send_queue_share(struct send_queue *queue, struct shared_block *block, size_t offset,
                     size_t length);

/* The next bytes that are side by side in memory; NULL and 0: the queue is empty. Borrowed until
 * the next change. */
const void *send_queue_next(const struct send_queue *queue, size_t *length);
/* At most as many as send_queue_next() gave. */
void send_queue_consume(struct send_queue *queue, size_t length);

/*
 * The frames that a link has still to send, numbered in their order. A message that may wait goes
 * in pieces, whenever nothing else is queued. It is a head of its own, and a block that many links
 * share. So it costs a slow link its head and a reference.
 */
#define LINK_PIECE ((size_t)64 << 10)

struct pieced;

struct frame_queue {
    struct send_queue queue;
    struct pieced *first, **last;
    size_t pieces; /* bytes of messages in pieces that are not in the queue yet */
    uint32_t node; /* for the headers */
    uint16_t sent; /* number of the next frame */
};

void frame_queue_init(struct frame_queue *frames, size_t limit);
void frame_queue_clear(struct frame_queue *frames);
void frame_queue_destroy(struct frame_queue *frames);
size_t frame_queue_length(const struct frame_queue *frames); /* all bytes that wait */

/* A place for a frame with at most such a body; frame_queue_commit() writes its header, and sends
 * it. NULL: over the limit. */
uint8_t *frame_queue_reserve(struct frame_queue *frames, size_t body);
void frame_queue_commit(struct frame_queue *frames, enum frame_type type, uint32_t epoch,
                        size_t body);

/* The header of the next frame; it counts once `sent` is one more. */
void frame_queue_header(const struct frame_queue *frames, uint8_t *place, enum frame_type type,
                        uint32_t epoch, size_t body);

/* A frame of `length` bytes of a head and a block that follows it, from `offset`. It begins with
 * the byte `lead` (0: none). false: over the limit. */
bool frame_queue_share(struct frame_queue *frames, enum frame_type type, uint32_t epoch,
                       uint8_t lead, const struct buf *head, struct shared_block *block,
                       size_t offset, size_t length);

/* A message that may wait. Holds the block, and takes the head, which is empty afterwards. */
void frame_queue_add_pieces(struct frame_queue *frames, enum frame_type type, uint32_t epoch,
                            struct buf *head, struct shared_block *block);
/* Queues the next piece of the first such message. false: there is none, or no room. */
bool frame_queue_next_piece(struct frame_queue *frames);
/* Leaves out those of this epoch that have not begun. */
void frame_queue_drop_pieces(struct frame_queue *frames, uint32_t epoch);
