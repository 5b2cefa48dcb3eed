/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A link: frames in both directions over a pair of descriptors (or one socket twice).
 *
 * Sending never blocks and never fails for the caller. Frames are queued and written at the end of
 * the loop's turn; what the kernel does not take waits. Callers bound the queue by what they have
 * in flight (credit for output; control frames are small). A peer that lets it grow beyond
 * LINK_QUEUE_MAX counts as broken, and the link is closed. Receiving never stops: only credit holds
 * a sender back (D4). A frame that is lost, repeated or out of order closes the link.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "io/loop.h"
#include "wire/frame.h"

#define LINK_QUEUE_MAX ((size_t)192 << 20)
/* The largest data frame that it reads at once, with the header of the next one. */
#define LINK_DATA_BEST (FRAME_READ_MAX - 2 * FRAME_HEADER_SIZE - FRAME_DATA_PREFIX)

struct link;
struct shared_block; /* io/send_queue.h */

struct link_ops {
    /* `body` is borrowed for the call. The callback may send; it may destroy the link. */
    void (*frame)(void *context, const struct frame_header *header, const uint8_t *body);
    /* Called once, and nothing after it. `reason` is NULL at a clean end of file. */
    void (*closed)(void *context, const char *reason);
    /* May be NULL. Called whenever the kernel has taken all that was queued. */
    void (*drained)(void *context);
    /* May be NULL. A write has failed although the other side is still there: nothing more is sent,
     * and closed() follows. The callback must not touch the link. */
    void (*mute)(void *context, const char *reason);
    /* May be NULL. What has come is not a frame, or not the next one: closed() follows. This is the
     * last chance to send the other side a word; the callback must not destroy the link. */
    void (*refused)(void *context, const char *reason);
};

/* Takes both descriptors (which may be equal) and makes them non-blocking. */
struct link *link_create(struct loop *loop, int read_fd, int write_fd, const struct link_ops *ops,
                         void *context, struct error *err);
void link_destroy(struct link *link); /* what is queued is lost: see link_flush() */

/* Much comes for a while: a pipe from an sshd gets more room, for what has none grows in the memory
 * of sshd. Then (false) it gets back what it had. It stays as it is if the system refuses. */
void link_widen(struct link *link, bool wide);
void link_set_node(struct link *link, uint32_t node); /* for the headers of what is sent */
void link_send(struct link *link, enum frame_type type, uint32_t epoch, const void *body,
               size_t length);
void link_send_message(struct link *link, enum frame_type type, uint32_t epoch,
                       const ProtobufCMessage *message);

/* The same message to many links, with one copy of its largest part. `block` is the value of the
 * message's bytes field number `field`, which `message` itself leaves empty. Or `field` is 0, and
 * the block is a packed message of the same type, of which the receiver gets the fields of both.
 * The links hold the block until they have sent it. */
void link_send_shared(struct link *link, enum frame_type type, uint32_t epoch,
                      const ProtobufCMessage *message, unsigned field, struct shared_block *block);
/* The same for a message that may wait. If it is large, it goes in pieces, and other frames go
 * between these, also those that are sent later. Such messages keep their order among each other,
 * and one of at most 64 KiB that waits for no other keeps it among all frames. */
void link_send_pieces(struct link *link, enum frame_type type, uint32_t epoch,
                      const ProtobufCMessage *message, unsigned field, struct shared_block *block);

/* Such messages of an epoch that is over: those that have not begun are not sent. */
void link_drop_pieces(struct link *link, uint32_t epoch);
/* May a message of this length wait, so that half of the queue remains for others? */
bool link_takes(const struct link *link, size_t length);

/* A data frame whose bytes the caller writes in place: reserve room for up to `room` bytes, fill
 * some of them, commit how many. Nothing may be sent on this link in between. */
uint8_t *link_data_reserve(struct link *link, size_t room);
void link_data_commit(struct link *link, enum frame_type type, uint32_t epoch,
                      const struct frame_data *data, size_t length);

/* Does the kernel take much now? If not, drained() is called when it does. */
bool link_ready(struct link *link);

/* The same without a copy: the frame's `length` bytes go from the pipe `fd`, where they are
 * waiting, to the kernel's side of the link. false: not possible now (something is queued), nothing
 * was taken. What the kernel does not take at once is read and queued. */
bool link_data_splice(struct link *link, enum frame_type type, uint32_t epoch,
                      const struct frame_data *data, int fd, size_t length);

bool link_has_come(const struct link *link); /* something waits to be read */
size_t link_queued(const struct link *link); /* bytes that the kernel has not taken yet */
bool link_flush(struct link *link);          /* tries to write all now; true when all is written */
