/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The preemption probe: a program of the user that runs again and again, to find out whether this
 * host will soon be preempted.
 *
 * Contract of a probe: status 0 means yes. The first word on stdout can be the remaining seconds
 * (digits, perhaps with a fraction; without it the deadline is unknown). The rest of that line is
 * the reason. Status 1 means no. Any other end is a warning, once for each distinct text, and the
 * probe runs again. So is a probe that takes longer than PREEMPT_LIMIT_MS: its whole process group
 * is killed.
 *
 * One probe runs at a time; a period lies between the end of one and the start of the next. It runs
 * without a shell, in a session of its own, with an empty stdin (io/program.h). After a notice with
 * a deadline it does not run again. After a notice without one it does, to learn the deadline.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "io/helpers.h"
#include "io/loop.h"

enum { PREEMPT_LIMIT_MS = 10000 };

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
