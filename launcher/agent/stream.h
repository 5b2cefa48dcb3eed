/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One output stream of a worker on its way to the driver: a pipe (or terminal) is read when the
 * driver has granted credit for it and the link is not congested, straight into the link's queue.
 *
 * A line whose end does not come (model/net/hold.h) is shown when the driver is told so, which
 * happens here and not there: only here it can be seen that nothing more waits in the pipe. Bytes
 * that wait for credit, or for a driver or a reader that is slow, never tear a line.
 */
#pragma once

#include "agent/post.h"
#include "io/loop.h"
#include "model/net/hold.h"

/* The node's credit, shared by all its streams; cumulative bytes (D4). */
struct stream_pool {
    struct loop *loop;
    const struct post *post; /* the agent's */
    uint64_t granted, used;
    int wide;                    /* pipes that hold more than usual */
    bool paused;                 /* a stream waits for stream_pool_resume() */
    struct stream *first, *last; /* all streams; first those that were read longest ago */
    struct hold hold;
    struct loop_timer *timer; /* for unfinished lines; NULL until there was one */
    int64_t due_ms;           /* what it is set for */
};

struct stream;

/* Takes `fd`. The frames go through `post`, under its epoch. `ended` is called once, at end of file
 * or after stream_cut(). */
struct stream *stream_create(struct stream_pool *pool, const struct post *post, int fd,
                             uint32_t seat, uint8_t number, void (*ended)(void *context),
                             void *context);
void stream_destroy(struct stream *stream);

/* Reads what is there without waiting, then ends the stream though somebody still holds its other
 * end. Bytes that credit does not cover yet are not lost: it ends as soon as they are read. */
void stream_cut(struct stream *stream);

/* Once it has ended: it was cut while somebody still held its other end. */
bool stream_missed(const struct stream *stream);

/* After credit came or the link's queue emptied: streams that had to pause go on. */
void stream_pool_resume(struct stream_pool *pool);
