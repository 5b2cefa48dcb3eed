/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends one output stream of a worker to the driver. A pipe (or terminal) is read while the driver
 * has granted credit and the link is not congested, directly into the link's queue.
 *
 * The agent decides when the driver shows an unfinished line (model/net/flow.h): only the agent
 * sees that the pipe is empty. Bytes that wait for credit, or for a slow driver or reader, never
 * tear a line.
 */
#pragma once

#include <sys/queue.h>

#include "agent/post.h"
#include "io/loop.h"
#include "model/net/flow.h"

/* The node's credit, shared by all its streams; cumulative bytes (D4). */
struct stream_pool {
    struct loop *loop;
    const struct post *post; /* the agent's */
    uint64_t granted, used;
    int wide;                            /* pipes that hold more than usual */
    bool paused;                         /* a stream waits for stream_pool_resume() */
    TAILQ_HEAD(, worker_stream) streams; /* all; first those that were read longest ago */
    struct line_hold hold;
    struct loop_timer *timer; /* for unfinished lines; NULL until there was one */
    int64_t due_ms;           /* what it is set for */
};

struct worker_stream;

/* Takes `fd`. The frames go through `post`, under its epoch. `ended` is called once, at end of file
 * or after stream_cut(). */
struct worker_stream *stream_create(struct stream_pool *pool, const struct post *post, int fd,
                                    uint32_t seat, uint8_t number, void (*ended)(void *context),
                                    void *context);
void stream_destroy(struct worker_stream *stream);

/* Reads what is there without waiting, then ends the stream, even if another process still holds
 * its other end. Bytes that wait for credit are not lost: the stream ends when they are read. */
void stream_cut(struct worker_stream *stream);

/* Reads what is there without waiting, as far as credit goes, so that its writer has room. */
void stream_take(struct worker_stream *stream);

/* Once it has ended: it was cut while another process still held its other end. */
bool stream_missed(const struct worker_stream *stream);

/* After new credit, or when the link's queue is empty: continues paused streams. */
void stream_pool_resume(struct stream_pool *pool);
