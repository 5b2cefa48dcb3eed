/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of departure need, and nobody else. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/departure.h"
#include "base/log.h"
#include "io/helpers.h"
#include "io/loop.h"

struct preempt;

/* `words` are copied; there is at least one, and the first is searched along PATH. The first probe
 * runs at once. `notice` is called from the loop: once, or twice when the deadline became known
 * later. `why` (borrowed for the call, never empty) is one line. `notice` may destroy the probe.
 * `loop`, `helpers` and `log` are borrowed. */
struct preempt *preempt_create(struct loop *loop, struct helpers *helpers, char *const *words,
                               size_t count, int64_t period_ms, const struct log *log,
                               void (*notice)(void *context, bool has_deadline, int64_t within_ms,
                                              const char *why),
                               void *context);
void preempt_destroy(struct preempt *preempt); /* kills one that runs; accepts NULL */

/* Another limit than PREEMPT_LIMIT_MS, from the next run on. */
void preempt_set_limit(struct preempt *preempt, int64_t limit_ms);
