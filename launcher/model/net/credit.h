/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output credit: how many bytes each node may send (D4). Pure.
 *
 * Policy: one budget for the whole job limits what the driver must keep in memory when its reader
 * is slow. Every node starts with a small window. The window doubles when the node uses it up while
 * the driver consumes its bytes as they come, and all windows stay within the budget. So a busy
 * link is filled, and idle nodes cost nothing. Bytes that had to wait for a slow reader double
 * nothing: more of them would only wait longer, in memory. Grants are cumulative byte counts since
 * the link came up, so a lost or repeated grant does no harm.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CREDIT_BUDGET ((uint64_t)64 << 20)
#define CREDIT_WINDOW_MIN ((uint64_t)64 << 10)
#define CREDIT_WINDOW_START ((uint64_t)1 << 20)

struct credit_budget {
    uint64_t total, handed_out; /* handed_out: the sum of all windows */
};

struct credit {
    struct credit_budget *budget;
    uint64_t window;
    uint64_t granted, received, consumed; /* cumulative */
};

void credit_budget_init(struct credit_budget *budget, uint64_t total);

/* A node's first window, for a job of `nodes` nodes. */
void credit_init(struct credit *credit, struct credit_budget *budget, uint64_t nodes);
void credit_release(struct credit *credit); /* the node has gone */

/* false: the node sent more than it was granted: a broken peer. */
bool credit_received(struct credit *credit, uint64_t bytes);

/* `waited`: for a slow reader, not consumed as they came. true: `granted` has been raised and is to
 * be sent to the node. */
bool credit_consumed(struct credit *credit, uint64_t bytes, bool waited);
