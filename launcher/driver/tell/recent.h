/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last output of a job or of a rank: pieces of whole lines with rank, stream and time, in a
 * ring. Pure.
 *
 * Output is a hot path. An addition costs one copy, and never looks at the bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECENT_BYTES ((size_t)64 * 1024) /* of a job */
#define RECENT_BYTES_MIN ((size_t)1024)
#define RECENT_LAUNCHER (-1) /* the rank of hvdrun's own messages */

struct recent_piece {
    int rank;
    bool is_stderr;
    int64_t wall_ns;
    const char *text; /* one or more lines; the last one may lack its newline */
    size_t length;
};

struct recent;

/* `size`: bytes of the ring, which the first piece creates; at least RECENT_BYTES_MIN. */
struct recent *recent_create(size_t size);
void recent_destroy(struct recent *recent); /* accepts NULL */

/* If a piece is longer than a quarter of the ring, only its last bytes are kept, which begin inside
 * a line. */
void recent_add(struct recent *recent, const struct recent_piece *piece);

int64_t recent_last_ns(const struct recent *recent); /* time of the last piece of a rank; 0: none */

/* Calls `each` for the pieces that are kept, the oldest first. The text is borrowed. */
void recent_walk(const struct recent *recent,
                 void (*each)(void *context, const struct recent_piece *piece), void *context);
