/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identical lines of many ranks, shown once. Pure: time is a parameter.
 *
 * A line waits for equal ones until every rank that still writes to this stream has written it, or
 * COLLAPSE_MS have passed since the first. Nothing is lost. The lines of each rank keep their
 * order, over both streams. So a rank joins a waiting line only if that line comes after everything
 * else of this rank that waits. At most COLLAPSE_BYTES or COLLAPSE_LINES wait; beyond that the
 * oldest go first.
 *
 * A rank is only a number here: the mux passes seats.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define COLLAPSE_MS 500
#define COLLAPSE_BYTES (1024 * 1024)
#define COLLAPSE_LINES 1024

struct collapse;

struct collapse_line {
    int stream;
    const char *text; /* as it was given; borrowed until the callback returns */
    size_t length;
    int first_rank;        /* the lowest */
    int count;             /* how many ranks wrote it */
    const uint64_t *ranks; /* bit set: those that wrote it */
};

/* None of the ranks writes yet: collapse_joined(). */
struct collapse *collapse_create(int ranks,
                                 void (*emit)(void *context, const struct collapse_line *line),
                                 void *context);
void collapse_destroy(struct collapse *collapse); /* drops what waits */

/* A whole line of a rank. */
void collapse_add(struct collapse *collapse, int rank, int stream, const char *text, size_t length,
                  int64_t now_ms);

/* Emits all that waits up to the last line of this rank, or all. Call it before you show text of
 * this rank that cannot be collapsed. */
void collapse_flush_rank(struct collapse *collapse, int rank);
void collapse_flush(struct collapse *collapse);

/* This rank writes no more to this stream. */
void collapse_ended(struct collapse *collapse, int rank, int stream);

/* Makes room for at least so many ranks, which do not write yet. If it must grow, it emits what
 * waits. */
void collapse_grow(struct collapse *collapse, int ranks);

/* From now on this rank writes to this stream; before, it did not or had ended. Call
 * collapse_flush_rank() before: nothing of an earlier rank with its number may wait. */
void collapse_joined(struct collapse *collapse, int rank, int stream);

int64_t collapse_due_ms(const struct collapse *collapse); /* when to call tick; -1: nothing waits */
void collapse_tick(struct collapse *collapse, int64_t now_ms);

/* Appends "0-3,6". */
void collapse_ranks(const uint64_t *set, int ranks, struct buf *out);
