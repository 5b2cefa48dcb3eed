/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection of a worker, for worker_lines.c: reads what the worker reports, and sends it the
 * ranks of its epoch that have ended, as far as it reads them.
 */
#pragma once

#include "agent/post.h"
#include "io/loop.h"
#include "line/packet.h"

/* Ranks of one epoch that have ended, in the order in which the driver named them. */
struct ended_ranks {
    uint32_t epoch;
    struct line_ended *list;
    size_t count;
};

struct worker_line;

struct worker_line_shared {
    struct loop *loop;
    const struct post *post; /* under the epoch of the lines */
    const struct ended_ranks *ended;
    void (*closed)(void *context, struct worker_line *line); /* destroy it here */
    void *context;
};

/* Takes `fd`. */
struct worker_line *worker_line_create(const struct worker_line_shared *shared, int fd,
                                       uint32_t seat);
void worker_line_destroy(struct worker_line *line);

uint32_t worker_line_seat(const struct worker_line *line);
bool worker_line_progress(const struct worker_line *line, uint64_t *operations);

/* The hosts of the job have changed. May close the line. */
void worker_line_hosts(struct worker_line *line);

/* Asks how many operations the worker has completed, and (`waits`) which of them wait for ranks.
 * May close the line. */
void worker_line_ask(struct worker_line *line, bool waits);

/* There are more ended ranks, or (`anew`) they are of another epoch now. May close the line. */
void worker_line_tell(struct worker_line *line, bool anew);
