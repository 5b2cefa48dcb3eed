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

#include "driver/job/job.h"

#define RECENT_BYTES ((size_t)64 * 1024) /* of a job */
#define RECENT_LAUNCHER (-1)             /* the rank of hvdrun's own messages */

struct recent_piece {
    int rank;
    bool is_stderr;
    int64_t wall_ns;
    const char *text; /* one or more lines; the last one may lack its newline */
    size_t length;
};

struct recent;

/* `size`: bytes of the ring, which the first piece creates, at least 1 KiB. */
struct recent *recent_create(size_t size);
void recent_destroy(struct recent *recent); /* accepts NULL */

/* If a piece is longer than a quarter of the ring, only its last bytes are kept, which begin inside
 * a line. */
void recent_add(struct recent *recent, const struct recent_piece *piece);

int64_t recent_last_ns(const struct recent *recent); /* time of the last piece of a rank; 0: none */

/* Calls `each` for the pieces that are kept, the oldest first. The text is borrowed. */
void recent_walk(const struct recent *recent,
                 void (*each)(void *context, const struct recent_piece *piece), void *context);
/* The same with single lines, and only the last `most` of them. Each is a piece without newline. */
void recent_walk_lines(const struct recent *recent, size_t most,
                       void (*each)(void *context, const struct recent_piece *line), void *context);

/*
 * The last output of each rank, for the status page and for evidence. Other jobs keep none.
 *
 * A rank takes memory with its first output: RANK_TAIL_BYTES, or less if there are many ranks. All
 * together they take RANK_TAILS_BYTES at most, and a rank for which there is no room has no tail.
 */

#define RANK_TAIL_BYTES ((size_t)16 << 10)
#define RANK_TAIL_BYTES_MIN ((size_t)4 << 10)
#define RANK_TAILS_BYTES ((size_t)32 << 20)
#define RANK_TAIL_BAR_BYTES ((size_t)256)

struct rank_tails;

struct rank_tails *rank_tails_create(int ranks);   /* as many as the job will most likely have */
void rank_tails_want(struct job *job);             /* the part that calls it will read them */
void rank_tails_destroy(struct rank_tails *tails); /* accepts NULL */

/* `tails` may be NULL. What hvdrun itself says belongs to no rank, and is ignored. */
void rank_tails_add(struct rank_tails *tails, const struct recent_piece *piece);
/* A line that the next one overwrites, as of a progress bar. Only the last one is kept, until the
 * rank prints a whole line. */
void rank_tails_add_bar(struct rank_tails *tails, const struct recent_piece *piece);

/* NULL: the rank has printed nothing, or has no tail. */
const struct recent *rank_tails_of(const struct rank_tails *tails, int rank);
/* Its progress bar, cut to RANK_TAIL_BAR_BYTES; NULL: there is none. Borrowed. */
const char *rank_tails_bar(const struct rank_tails *tails, int rank);
