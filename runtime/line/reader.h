/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a line in a thread of its own, which sleeps until the agent says something. It belongs to
 * one epoch: that in which the worker has connected to its peers.
 */
#pragma once

#include <stdbool.h>

#include "line/packet.h"

struct line_reader_ops {
    /* A rank of this epoch has ended; `how` is a short text, such as "it was killed by signal 9".
     * `failed` is false if its exit status is 0. Also when it ended before the reader was created.
     */
    void (*ended)(void *context, uint32_t rank, bool failed, const char *how);
    /* The launcher has begun another epoch without this worker: all its peers have left. */
    void (*left)(void *context);
    /* The agent asks for PROGRESS. NULL: it gets no answer. */
    void (*asked)(void *context);
    /* The agent asks for WAITS, which repeat this number. NULL: it gets no answer. */
    void (*asked_waits)(void *context, uint32_t round);
};

struct line_reader;

/* `least_epoch`: the epoch in which this process was started; what the agent says about an earlier
 * one is not meant for it. NULL: there is no line at that address, or no thread. The calls come
 * from the thread of the reader, until line_reader_destroy(). */
struct line_reader *line_reader_create(const char *address, uint32_t least_epoch,
                                       const struct line_reader_ops *ops, void *context,
                                       struct error *err);
void line_reader_destroy(struct line_reader *reader); /* waits for the thread; accepts NULL */

/* As line_send(), from any thread. NULL: nothing is sent. */
int line_reader_send(struct line_reader *reader, const struct line_packet *packet);
