/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the time between a warning and the end of the scheduler's job is shared out. Pure.
 *
 *   now ............... workers .............. | term | rest ........ end
 *
 * The workers get the most of it. Then those that are still there get TERM, after `term_ms` KILL;
 * the rest is for what remains to be done before the scheduler ends everything: the last output,
 * the report, the requeue. Without a known end there is no rest: the grace is theirs.
 */
#pragma once

#include <stdint.h>

#define WARNING_GRACE_MS 30000 /* when no end is known, and no --grace given */
#define WARNING_LATE_MS 10000  /* when the end is over already, and Slurm's KillWait runs */

struct warning_times {
    int64_t workers_ms, term_ms;
};

/* `left_ms`: until the end; INT64_MAX: it is not known. `grace_ms`: --grace, -1 when not given. */
struct warning_times warning_times_share(int64_t left_ms, int64_t grace_ms);
