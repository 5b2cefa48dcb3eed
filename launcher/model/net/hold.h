/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When to show an unfinished line of a worker: a prompt, "Epoch 3 ...". Pure.
 *
 * Policy: HOLD_MS after it began. There are two kinds of shortage. The node's workers can write
 * more than a person reads (HOLD_BUSY_BYTES within HOLD_MS). Or the agent had to wait for a
 * processor or for the driver. In a shortage, the writer of half a line has probably just had no
 * processor either. So the line waits until the shortage has been over for HOLD_MS, at most
 * HOLD_MOST_MS. The maximum is for prompts while other workers never stop writing. Times are in
 * milliseconds of any one clock.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define HOLD_MS 200
#define HOLD_MOST_MS 2000
#define HOLD_BUSY_BYTES ((size_t)256 << 10)
#define HOLD_LATE_MS 50

struct hold { /* an all-zero struct is ready for use */
    int64_t counted_ms;
    size_t counted;  /* bytes since then */
    int64_t busy_ms; /* when the last shortage was */
};

/* So many bytes of any worker of this node have passed. */
void hold_passed(struct hold *hold, size_t bytes, int64_t now_ms);

/* The driver does not accept output, or did not until now. */
void hold_blocked(struct hold *hold, int64_t now_ms);

/* A timer for `due_ms` fires now. */
void hold_woke(struct hold *hold, int64_t due_ms, int64_t now_ms);

/* When to show a line that began at `since_ms`, by what is known now; it can become later. */
int64_t hold_due_ms(const struct hold *hold, int64_t since_ms);
