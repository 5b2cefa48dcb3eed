/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The preemption probe: a program of the user that is asked, again and again, whether this host is
 * about to be taken away.
 *
 * Contract of a probe: status 0 = it is. The first word on stdout may be the seconds that are left
 * (digits, perhaps with a fraction; without it no deadline is known), the rest of that line is the
 * reason. Status 1 = it is not. Every other end, and none within PREEMPT_LIMIT_MS (then its whole
 * process group is killed), is a warning, once for each distinct text, and the probe is asked
 * again.
 *
 * Never two at a time; a period lies between the end of one and the start of the next. It runs
 * without a shell, in a session of its own, with an empty stdin. After a notice with a deadline it
 * is not asked any more; after one without, it is, for a deadline.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/log.h"
#include "io/loop.h"
#include "io/reaper.h"

enum { PREEMPT_LIMIT_MS = 10000 };

struct preempt;

/* `words` are copied, and there is at least one; the first is searched along PATH. The first
 * question is asked at once. `notice` comes from the loop or from preempt_exited(), once, or twice
 * when the deadline became known later; `why` (borrowed for the call, never empty) is one line. It
 * may destroy the probe. `log` stays the caller's. */
struct preempt *preempt_create(struct loop *loop, char *const *words, size_t count,
                               int64_t period_ms, const struct log *log,
                               void (*notice)(void *context, bool has_deadline, int64_t within_ms,
                                              const char *why),
                               void *context);
void preempt_destroy(struct preempt *preempt); /* kills one that runs; accepts NULL */

/* Another limit than PREEMPT_LIMIT_MS, from the next question on. */
void preempt_set_limit(struct preempt *preempt, int64_t limit_ms);

/* While all below the agent is being ended: one that runs is killed (which is no warning; it is
 * gone when its exit has been handed in) and none is started. Afterwards it is asked at once,
 * unless nothing is left to be known. Accepts NULL. */
void preempt_pause(struct preempt *preempt, bool paused);

/* From the owner of the reaper. True: it was the probe's. */
bool preempt_exited(struct preempt *preempt, const struct reaper_exit *exit);

pid_t preempt_pid(
    const struct preempt *preempt); /* of the running one, also of its group; 0: none */
