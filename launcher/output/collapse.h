/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identical lines of many ranks, shown once. Pure: time is a parameter.
 *
 * A line waits for its equals until every rank that is still talking on this stream has said it, or
 * COLLAPSE_MS have passed since it came first. Nothing is lost and the order of each rank's lines
 * (of both streams together) is kept: a rank joins a waiting line only when that line comes after
 * everything else of this rank that waits. At most COLLAPSE_BYTES or COLLAPSE_LINES wait; beyond
 * that the oldest go first.
 *
 * What is called a rank here is only a number: the mux passes seats, which in an elastic job is not
 * the same.
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
    int count;             /* how many ranks said it */
    const uint64_t *ranks; /* bit set of them, by rank */
};

/* `talking[stream]`: how many ranks are expected on each of the two streams. */
struct collapse *collapse_create(int ranks, const int talking[2],
                                 void (*emit)(void *context, const struct collapse_line *line),
                                 void *context);
void collapse_destroy(struct collapse *collapse); /* forgets what waits */

/* A whole line of a rank. */
void collapse_add(struct collapse *collapse, int rank, int stream, const char *text, size_t length,
                  int64_t now_ms);

/* Emits all that waits up to the last line of this rank (before something of it is shown that
 * cannot be collapsed), or all. */
void collapse_flush_rank(struct collapse *collapse, int rank);
void collapse_flush(struct collapse *collapse);

/* This rank says no more on this stream. */
void collapse_ended(struct collapse *collapse, int rank, int stream);

/* Room for at least so many ranks; the new ones do not talk yet. What waits is emitted when it must
 * grow. */
void collapse_grow(struct collapse *collapse, int ranks);

/* From now on this rank is expected on this stream; it was not, or had ended. Nothing of an earlier
 * one with its number may wait: collapse_flush_rank(). */
void collapse_joined(struct collapse *collapse, int rank, int stream);

int64_t collapse_due_ms(const struct collapse *collapse); /* when to call tick; -1: nothing waits */
void collapse_tick(struct collapse *collapse, int64_t now_ms);

/* Appends "0-3,6". */
void collapse_ranks(const uint64_t *set, int ranks, struct buf *out);
