/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one line (worker_lines.h) says about operations that wait for ranks, on its way to the
 * driver, which prints it. Workers are not trusted: each reports few process sets, few stalls in a
 * second, and few answers to a question. The driver learns of the end of each stall that it knows.
 */
#pragma once

#include "agent/post.h"
#include "line/packet.h"

#define WORKER_STALLS_SETS 8 /* of which one line may report a stall */

struct worker_stalls {
    const struct post *post;
    uint32_t seat;
    uint32_t sets[WORKER_STALLS_SETS]; /* the driver knows these */
    int count;
    int allowance; /* of stalls */
    int64_t refilled_ms;
    uint32_t round; /* of the last question for WAITS; 0: none */
    int64_t round_ms;
    int waits; /* that the worker may still send in this round */
};

/* `post` is of the lines. */
void worker_stalls_begin(struct worker_stalls *stalls, const struct post *post, uint32_t seat,
                         int64_t now_ms);
void worker_stalls_end(const struct worker_stalls *stalls); /* all are over */

/* The number for the next question for WAITS; 0: it is too early for one. */
uint32_t worker_stalls_round(const struct worker_stalls *stalls, int64_t now_ms);
void worker_stalls_asked(struct worker_stalls *stalls, int64_t now_ms); /* it was sent */

/* STALLED, WAITS or GOES_ON. */
void worker_stalls_take(struct worker_stalls *stalls, struct line_packet *packet, int64_t now_ms);
