/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a line of a worker is shown although its end has not come: a prompt, "Epoch 3 ...". Pure.
 *
 * Policy: HOLD_MS after it began. But while a node's workers write more than anybody reads as it
 * comes (HOLD_BUSY_BYTES within HOLD_MS), or its agent itself had to wait for a processor or for
 * the driver, the writer of half a line has probably just had none: then the line waits until that
 * has been over for HOLD_MS, and HOLD_MOST_MS at the most, so that a prompt appears also beside
 * workers that never stop writing. Times are in milliseconds of any one clock.
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
    int64_t busy_ms; /* when there was a shortage last */
};

/* So many bytes of any worker of this node have passed. */
void hold_passed(struct hold *hold, size_t bytes, int64_t now_ms);

/* The driver does not take what is written, or did not until now. */
void hold_blocked(struct hold *hold, int64_t now_ms);

/* What was to happen at `due_ms` happens now. */
void hold_woke(struct hold *hold, int64_t due_ms, int64_t now_ms);

/* When a line that began at `since_ms` is shown, as far as is known now: it may become later. */
int64_t hold_due_ms(const struct hold *hold, int64_t since_ms);
