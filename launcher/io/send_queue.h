/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a link has still to send: bytes of its own, and blocks that several links send alike.
 *
 * A block exists once, however many queues hold it, and ends with its last holder. So an answer to
 * all agents costs the driver its size once, and not once for each agent. Blocks are not for
 * several threads.
 */
#pragma once

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
 * Messages that a link sends in pieces, whenever its queue is empty. Each is a head of its own, and
 * a block that many links share. So it costs a slow link its head and a reference.
 */
struct pieced {
    struct pieced *next;
    enum frame_type type;
    uint32_t epoch;
    struct buf head;            /* its first bytes */
    struct shared_block *block; /* all others */
    size_t at;                  /* how many have been sent */
};

struct piece_list {
    struct pieced *first, **last;
    size_t length; /* bytes that have not been sent */
};

void piece_list_init(struct piece_list *list);
void piece_list_clear(struct piece_list *list);
/* Leaves out the messages of this epoch that have not begun. */
void piece_list_drop(struct piece_list *list, uint32_t epoch);

/* Holds the block, and takes the head, which is empty afterwards. */
void piece_list_add(struct piece_list *list, enum frame_type type, uint32_t epoch, struct buf *head,
                    struct shared_block *block);

/* `length` bytes of the first message have been sent. After its last byte it is gone. */
void piece_list_sent(struct piece_list *list, size_t length);
size_t pieced_rest(const struct pieced *pieced);
