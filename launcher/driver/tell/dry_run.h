/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `--dry-run`: the plan as a table for people and as JSON for programs. The same plan gives the
 * same bytes. Both return -1 if `out` reaches its limit (allow for about 200 bytes for each rank);
 * the text up to there stays in it.
 */
#pragma once

#include "base/buf.h"
#include "model/plan/plan.h"

/* A summary line, then one aligned line for each rank: rank, host, local rank and size, cross
 * rank and size, app, and its shortened command. */
int dry_run_table(const struct plan *plan, const struct app_list *apps, struct buf *out);

/* One object: size, nodes [{name, slots, local_size, first_rank}] (the lowest), ranks [{rank, host,
 * local_rank, local_size, cross_rank, cross_size, app, app_rank}], apps [{argv, np}]. Bytes of a
 * command that are not UTF-8 become U+FFFD. */
int dry_run_json(const struct plan *plan, const struct app_list *apps, struct buf *out);
