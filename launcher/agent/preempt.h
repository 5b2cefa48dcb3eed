/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The preemption probe: a program of the user that is asked, again and again, whether this host is
 * about to be taken away.
 *
 * Contract of a probe: status 0 means that it is. The first word on stdout can be the number of
 * seconds that remain (digits, perhaps with a fraction). Without it the deadline is not known. The
 * rest of that line is the reason. Status 1 means that it is not. Any other end is a warning, once
 * for each distinct text, and the probe is asked again. A probe that runs longer than
 * PREEMPT_LIMIT_MS is such an end, and its whole process group is killed.
 *
 * Never two at a time; a period lies between the end of one and the start of the next. The probe
 * runs without a shell, in a session of its own, with an empty stdin (io/program.h). After a notice
 * with a deadline it is not asked again; after one without, it is asked on, for a deadline.
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

/* `words` are copied, and there is at least one; the first is searched along PATH. The first
 * question is asked at once. `notice` comes from the loop, once, or twice when the deadline became
 * known later; `why` (borrowed for the call, never empty) is one line. It may destroy the probe.
 * `loop`, `helpers` and `log` stay the caller's. */
struct preempt *preempt_create(struct loop *loop, struct helpers *helpers, char *const *words,
                               size_t count, int64_t period_ms, const struct log *log,
                               void (*notice)(void *context, bool has_deadline, int64_t within_ms,
                                              const char *why),
                               void *context);
void preempt_destroy(struct preempt *preempt); /* kills one that runs; accepts NULL */

/* Another limit than PREEMPT_LIMIT_MS, from the next question on. */
void preempt_set_limit(struct preempt *preempt, int64_t limit_ms);
