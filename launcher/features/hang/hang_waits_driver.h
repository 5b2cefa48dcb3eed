/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which operations of a quiet job wait for which ranks, and which of these names the rank to blame.
 * libhvd says that when the agents ask (docs/runtime.md). An answer is never needed: a worker that
 * does not answer only leaves less to know.
 *
 * One answer of a worker has a stall for each group of ranks that wait in a process set. The answer
 * to a later question replaces it.
 */
#pragma once

#include "driver/tell/stalls.h"

#define HANG_WAITS_MAX 256

struct hang_waits;

struct hang_waits *hang_waits_create(void);
void hang_waits_destroy(struct hang_waits *waits); /* accepts NULL */
void hang_waits_forget(struct hang_waits *waits);  /* the job shows progress */

/* Takes what `stall` owns. `round`: of the question that it answers. Without ranks, it only says
 * that nothing waits in its set. */
void hang_waits_take(struct hang_waits *waits, struct stall *stall, uint32_t round);

/* The wait that names the ranks to blame, among the answers and the stalls that were reported and
 * last. The fewest missing ranks decide, then those that do not wait themselves. NULL: none.
 * Borrowed until the next change. */
const struct stall *hang_waits_decide(const struct hang_waits *waits,
                                      const struct stall_list *stalls, int64_t now_ns);

/* Appends what this one says, and for what the first missing rank waits itself. */
void hang_waits_text(const struct hang_waits *waits, const struct stall *found, struct buf *out);
