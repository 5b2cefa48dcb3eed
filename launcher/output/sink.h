/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread that writes, behind a queue (D4). A terminal, a pipe or a file on a dead file server
 * blocks this thread only.
 *
 * sink_append() collects bytes in blocks. The thread gets a block when it is full, or by
 * sink_submit() as soon as everything before it is written. It writes in the order in which bytes
 * were appended, over all targets. The thread starts with the first block. A target that fails for
 * good is reported once and dropped; the others go on. The queue itself has no limit: callers look
 * at sink_queued().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "io/loop.h"
#include "output/target.h"
#include "output/types.h"

struct sink;

struct sink_ops {
    void (*drained)(void *context); /* the condition of sink_wake() is met */
    void (*failed)(void *context, struct output_target *target, int errnum);
};

struct sink *sink_create(struct loop *loop, const struct sink_ops *ops, void *context);

/* Writes what is queued, waiting at most `wait_ms`, and ends the thread. False: it is blocked in a
 * write; it ends when that write returns. No callback runs after this. */
bool sink_destroy(struct sink *sink, int64_t wait_ms);

/* Takes a new target (output/target.h), which lives as long as the sink, and returns it. */
struct output_target *sink_keep(struct sink *sink, struct output_target *target_take);

void sink_append(struct sink *sink, struct output_target *target, const void *bytes, size_t length);

/* The same in place: where the next bytes for this target go, and the room there, at least 1. Write
 * some and call sink_placed() with their number before you append anything else. */
char *sink_place(struct sink *sink, struct output_target *target, size_t *room);
void sink_placed(struct sink *sink, size_t length);

/* Makes the file, even if it is empty. */
void sink_open(struct sink *sink, struct output_target *target);
/* After what has been appended. */
void sink_end(struct sink *sink, struct output_target *target, enum target_end end);
void sink_submit(struct sink *sink);

size_t sink_queued(const struct sink *sink); /* bytes appended and not written yet */

/* A place in the queue: everything appended so far. Reached when it is written or dropped. */
uint64_t sink_ticket(const struct sink *sink);
bool sink_reached(const struct sink *sink, uint64_t ticket);
/* Calls ops.failed for the failures so far, without waiting for the wake-up of the thread. */
void sink_report_failures(struct sink *sink);

/* Calls drained() once, from the loop: when at most `below` bytes are queued, or `ticket` is
 * reached. A later call replaces the earlier one. Pass 0 for a ticket that is not wanted. */
void sink_wake(struct sink *sink, size_t below, uint64_t ticket);

/*
 * The backlog: raw bytes that wait for room in the sink's queue, in the order in which they came.
 * Between them wait the calls about streams and seats. Nothing here limits its size: the credit
 * that the driver grants does. Pure.
 */

enum backlog_what {
    BACKLOG_BYTES,
    BACKLOG_SHOW, /* show an unfinished line; no bytes */
    BACKLOG_END,  /* the stream ends here; no bytes */
    BACKLOG_SEAT  /* another worker has the seat from here on; no bytes */
};

struct backlog_chunk {
    struct backlog_chunk *next;
    enum backlog_what what;
    struct output_seat who; /* BACKLOG_SEAT: the host is in `bytes` */
    int seat, stream;
    int64_t wall_ns;
    size_t length, taken;
    char bytes[];
};

struct backlog { /* an all-zero struct is empty */
    struct backlog_chunk *first, *last;
    uint64_t put, done; /* chunks so far */
};

void backlog_put(struct backlog *backlog, int seat, int stream, const void *bytes, size_t length,
                 int64_t wall_ns);
void backlog_put_word(struct backlog *backlog, enum backlog_what what, int seat, int stream);
void backlog_put_seat(struct backlog *backlog, int seat, const struct output_seat *who);
void backlog_drop_first(struct backlog *backlog);
