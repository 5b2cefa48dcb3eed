/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The late plan: a host that came without a slot count has as many slots as GPUs, which only its
 * agent knows. Such a job begins with a provisional plan (one slot for each of these hosts), whose
 * hosts are all called; when all have said HELLO the plan is made once more, and this one counts.
 * The agents of hosts without a rank quit.
 */
#pragma once

#include "driver/job/job.h"

/* Once, when all nodes are up and before PREPARE. `out` is the caller's, and job->plan from then
 * on. -1: the plan cannot be made; the job ends. */
int late_plan_take(struct job *job, struct plan **out);

/* Are the ranks that --stdin and --pty name in the plan? false: the job ends. */
bool late_plan_check_ranks(struct job *job);
