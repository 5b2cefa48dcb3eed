/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How output flows from the workers of a node to the driver: how much of it, and when an unfinished
 * line. Pure.
 *
 * Output credit: how many bytes each node may send (D4).
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
#include <stddef.h>
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

/* A node's first window, for a job of `nodes` nodes. */
void credit_init(struct credit *credit, struct credit_budget *budget, uint64_t nodes);
void credit_release(struct credit *credit); /* the node has gone */

/* false: the node sent more than it was granted: a broken peer. */
bool credit_received(struct credit *credit, uint64_t bytes);

/* `waited`: for a slow reader, not consumed as they came. true: `granted` has been raised and is to
 * be sent to the node. */
bool credit_consumed(struct credit *credit, uint64_t bytes, bool waited);

/*
 * When to show an unfinished line of a worker: a prompt, "Epoch 3 ...".
 *
 * Policy: HOLD_MS after it began. There are two kinds of shortage. The node's workers can write
 * more than a person reads (HOLD_BUSY_BYTES within HOLD_MS). Or the agent had to wait for a
 * processor or for the driver. In a shortage, the writer of half a line has probably just had no
 * processor either. So the line waits until the shortage has been over for HOLD_MS, at most
 * HOLD_MOST_MS. The maximum is for prompts while other workers never stop writing. Times are in
 * milliseconds of any one clock.
 */

#define HOLD_MS 200
#define HOLD_MOST_MS 2000
#define HOLD_BUSY_BYTES ((size_t)256 << 10)
#define HOLD_LATE_MS 50

struct line_hold { /* an all-zero struct is ready for use */
    int64_t counted_ms;
    size_t counted;  /* bytes since then */
    int64_t busy_ms; /* when the last shortage was */
};

/* So many bytes of any worker of this node have passed. */
void hold_passed(struct line_hold *hold, size_t bytes, int64_t now_ms);

/* The driver does not accept output, or did not until now. */
void hold_blocked(struct line_hold *hold, int64_t now_ms);

/* A timer for `due_ms` fires now. */
void hold_woke(struct line_hold *hold, int64_t due_ms, int64_t now_ms);

/* When to show a line that began at `since_ms`, by what is known now; it can become later. */
int64_t hold_due_ms(const struct line_hold *hold, int64_t since_ms);
