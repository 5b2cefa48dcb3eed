/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations of libhvd that wait, or waited, for ranks that did not submit them, as workers
 * report them (docs/runtime.md). A worker has at most one for each process set at a time. The list
 * is bounded: what is over goes first.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define STALLS_MAX 256

/* Ranks, ascending. */
struct stall_ranks {
    int *list; /* owned; NULL: none */
    int count;
    bool more; /* there are more than these */
};

struct stall {
    int seat, rank; /* of the worker that reports it */
    uint32_t set;   /* process set; 0: all ranks */
    uint32_t seconds, others;
    char *operation, *name; /* owned; plain text */
    struct stall_ranks waiting, missing;
    int64_t since_ns;    /* wall clock: when it was first reported */
    int64_t reported_ns; /* monotonic clock: when it was last reported */
    uint32_t period;     /* seconds; the list sets it: a stall that lasts is reported so often */
    bool over;
};

struct stall_list;

struct stall_list *stall_list_create(void);
void stall_list_destroy(struct stall_list *list); /* accepts NULL */

/* Takes what `stall` owns. It replaces the last report of this seat about the same set and name.
 * The result is valid until the next change of the list. */
const struct stall *stall_list_add(struct stall_list *list, const struct stall *stall);
void stall_list_over(struct stall_list *list, int seat, uint32_t set);
void stall_list_all_over(struct stall_list *list); /* another epoch begins */

/* The oldest is 0; NULL: there are not so many. A list that is NULL is empty. */
const struct stall *stall_list_at(const struct stall_list *list, int number);

/* Whether it lasts: it is not over, and two reports have not failed to come. */
bool stall_lasts(const struct stall *stall, int64_t now_ns);

/* "ranks 0-2 wait for rank 3 in allreduce 'grad.17', for 60 s" */
void stall_text(const struct stall *stall, struct buf *out);
void stall_clear(struct stall *stall); /* frees what it owns */
