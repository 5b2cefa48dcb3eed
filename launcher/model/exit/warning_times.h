/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Divides the time between a warning and the end of the scheduler's job. Pure.
 *
 *   now ............... workers .............. | term | rest ........ end
 *
 * The workers get most of it. Then those that still run get TERM, and KILL after `term_ms`. The
 * rest is for the last output, the report and the requeue before the scheduler ends everything.
 * Without a known end there is no rest: the workers have the grace.
 */
#pragma once

#include <stdint.h>

#define WARNING_GRACE_MS 30000 /* if the end is unknown and --grace is not given */
#define WARNING_LATE_MS 10000  /* if the time is over already, and KillWait of Slurm runs */

struct warning_times {
    int64_t workers_ms, term_ms;
};

/* `left_ms`: until the end; INT64_MAX: it is not known. `grace_ms`: --grace, -1 when not given. */
struct warning_times warning_times_share(int64_t left_ms, int64_t grace_ms);
