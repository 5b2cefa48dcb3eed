/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libraries of ranks write while ranks wait: the warnings of stall inspectors, and the lines
 * of PyTorch's watchdog. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/exit/tail.h"

/*
 * The warnings of stall inspectors: that a tensor waits for ranks that did not submit it. Horovod
 * repeats its warning for as long as the stall lasts, so such lines are not progress. They name
 * the ranks that are missing. A line that comes in two pieces, with a sample in between, is not
 * recognised. So it counts as output, as any other line.
 *
 * Horovod 0.28 writes these lines, with one call:
 *   [...] One or more tensors were submitted to be reduced, gathered or broadcasted by subset of
 *   ranks and are waiting for remainder of ranks for more than 60 seconds. [...]
 *   Missing ranks:
 *   2: [grad.1, grad.2]
 * libhvd writes one, if no agent takes its report: "libhvd: warning: rank 0 waits for rank 2 in
 * [...]".
 */

#define STALL_TEXT_RANKS 256
#define STALL_TEXT_NAME 120

/* An all-zero struct is ready for use. */
struct stall_text {
    bool inside, listing;          /* the last line was of a warning, and of its list */
    int missing[STALL_TEXT_RANKS]; /* of the last warning, ascending; of more, nothing is kept */
    int count;
    char name[STALL_TEXT_NAME + 1]; /* the first tensor for which the first of them is missing; any
                                       bytes */
};

/* Takes the next line of a rank's stderr, without its end. Whether it is a part of a warning. */
bool stall_text_line(struct stall_text *text, const char *line, size_t length);

struct stall_lines;

struct stall_lines *stall_lines_create(void);
void stall_lines_destroy(struct stall_lines *lines); /* accepts NULL */

/* How many of all bytes that the worker on a seat has written are those of warnings. `tail`: its
 * stderr. `quiet`: the job is; otherwise nothing is searched, and nothing found. */
uint64_t stall_lines_take(struct stall_lines *lines, int seat, const struct tail *tail, bool quiet,
                          int64_t now_ns);

/* The newest warning that names ranks. NULL: none within the last STALL_LINES_FRESH_NS. */
#define STALL_LINES_FRESH_NS (INT64_C(150) * 1000000000) /* Horovod writes one every 60 s */
const struct stall_text *stall_lines_find(const struct stall_lines *lines, int64_t now_ns);

/*
 * What the watchdog of torch.distributed writes about the collectives of a rank.
 *
 * Its lines differ between versions (docs/hangs.md). All that count have "last enqueued" and a
 * number. Each process group counts for itself, so numbers of two groups cannot be compared. A line
 * names its group in one of three ways: "[PG 0 Rank 1]", "[PG 0 (default_pg) Rank 1]", "[PG ID 0 PG
 * GUID 0(default_pg) Rank 1]". A line without a group counts as one of group 0, which has all
 * ranks.
 */

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
