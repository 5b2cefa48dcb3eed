/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last output of each rank, for the status page and for evidence. Other jobs keep none.
 *
 * A rank takes memory with its first output: RANK_TAIL_BYTES, or less if there are many ranks. All
 * together they take RANK_TAILS_BYTES at most, and a rank for which there is no room has no tail.
 */
#pragma once

#include "driver/job/job.h"
#include "driver/tell/recent.h"

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
