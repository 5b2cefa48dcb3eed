/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the watchdog of torch.distributed writes about the collectives of a rank. Pure.
 *
 * Its lines differ between versions (docs/hangs.md). All that count have "last enqueued" and a
 * number. Each process group counts for itself, so numbers of two groups cannot be compared. A line
 * names its group in one of three ways: "[PG 0 Rank 1]", "[PG 0 (default_pg) Rank 1]", "[PG ID 0 PG
 * GUID 0(default_pg) Rank 1]". A line without a group counts as one of group 0, which has all
 * ranks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct watchdog_state {
    int64_t group;
    int64_t enqueued;  /* the number of the last collective that the rank has begun */
    int64_t completed; /* -1: the line does not say, or says something impossible */
};

/* false: it is another line. */
bool watchdog_read(const char *line, size_t length, struct watchdog_state *out);

#define WATCHDOG_GROUPS 64

/* The last state of each group of one rank. */
struct watchdog_rank {
    struct watchdog_state groups[WATCHDOG_GROUPS]; /* of further groups nothing is kept */
    size_t count;
};

void watchdog_rank_add(struct watchdog_rank *rank, const struct watchdog_state *state);

/* Takes the groups in which ranks have different numbers, and chooses the one about which most
 * ranks have written. Sets enqueued[i] to the number of rank i in it; -1: it has written none.
 * false: no group has different numbers. */
bool watchdog_compare(const struct watchdog_rank *ranks, size_t count, int64_t *enqueued);
