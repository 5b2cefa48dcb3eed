/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Raw bytes that wait for room in the sink's queue, in the order in which they came. Between them
 * wait the calls about streams and seats. Nothing here limits its size: the credit that the driver
 * grants does. Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "output/types.h"

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
void backlog_destroy(struct backlog *backlog);
