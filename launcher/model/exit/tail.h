/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last bytes that a worker wrote to its stderr, with the times at which its agent read them.
 * The report shows the last lines, and symptom.h looks for errors in all of it. Pure; allocated
 * with the first byte.
 *
 * Output is a hot path. Adding bytes never looks at them, and costs one copy of at most TAIL_KEPT
 * bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TAIL_LINES 20
#define TAIL_BYTES 2048
#define TAIL_KEPT 8192 /* a traceback or a C++ stack is longer than what the report shows */
#define TAIL_MARKS 32

/* What began at this place of the stream. */
struct tail_mark {
    uint64_t at; /* bytes of the stream before it */
    int64_t when_ns;
    bool elsewhere; /* after a silence of this stream, the worker wrote to its other stream */
};

struct tail {                /* an all-zero struct is ready for use */
    char *ring;              /* byte number n of the stream is at n % room */
    size_t room;             /* grows up to TAIL_KEPT */
    uint64_t total;          /* bytes of the stream so far */
    struct tail_mark *marks; /* TAIL_MARKS of them, a ring; NULL before the first byte */
    unsigned first_mark, mark_count;
    char *text; /* what tail_text() made */
};

void tail_destroy(struct tail *tail);

/* `when_ns`: when they were read, on the clock on which the exits are known. */
void tail_add(struct tail *tail, const void *bytes, size_t length, int64_t when_ns);

/* The worker wrote to its other stream. Kept only if this stream has been silent for
 * TAIL_SILENCE_NS and was the last one that was written to. */
#define TAIL_SILENCE_NS (INT64_C(5) * 1000000000)
void tail_elsewhere(struct tail *tail, int64_t when_ns);

/* At most TAIL_LINES lines in at most TAIL_BYTES bytes, without a newline at the end. A line that
 * does not fit loses its beginning. Valid UTF-8 without NUL; other bytes become '?'. Never NULL;
 * borrowed until the next call with this tail. */
const char *tail_text(struct tail *tail);

/* Walks through all lines that are kept, the oldest first. A line ends with \n or \r. */
struct tail_line {
    const char *text; /* not terminated; borrowed until tail_walk_end() */
    size_t length;
    int64_t when_ns; /* when its first byte was read. If that is not known any more: a later time */
    bool elsewhere;  /* not a line: the worker wrote to its other stream */
};
struct tail_walk {
    const struct tail *tail; /* borrowed; must not change */
    char *bytes;             /* all that are kept; NULL: none */
    size_t length, at;
    bool cut;       /* older bytes are gone: the first line may have lost its beginning */
    unsigned marks; /* passed */
    int64_t when_ns;
};
void tail_walk_begin(struct tail_walk *walk, const struct tail *tail);
bool tail_walk_next(struct tail_walk *walk, struct tail_line *line);
void tail_walk_end(struct tail_walk *walk);
