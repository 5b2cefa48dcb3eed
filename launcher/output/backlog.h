/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Raw bytes that wait for room in the sink's queue, in the order in which they came. Its size is
 * bounded by the credit that the driver has given away, not here. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct backlog_chunk {
    struct backlog_chunk *next;
    int rank, stream;
    bool end; /* no bytes: the stream ends here */
    int64_t wall_ns;
    size_t length, taken;
    char bytes[];
};

struct backlog { /* an all-zero struct is empty */
    struct backlog_chunk *first, *last;
    uint64_t put, done; /* chunks so far */
};

void backlog_put(struct backlog *backlog, int rank, int stream, const void *bytes, size_t length,
                 int64_t wall_ns);
void backlog_put_end(struct backlog *backlog, int rank, int stream);
void backlog_drop_first(struct backlog *backlog);
void backlog_destroy(struct backlog *backlog);
