/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The late plan: a host without a slot count has as many slots as GPUs, which only its agent knows.
 * Such a job starts with a provisional plan with one slot for each of these hosts, and calls all
 * its hosts. When all agents have sent HELLO, the final plan replaces it. The agents of hosts
 * without a rank quit.
 */
#pragma once

#include "driver/job/job.h"

/* Call it once, when all nodes are up and before PREPARE. The caller owns `out`, which is
 * job->plan from then on. -1: the plan cannot be made; the job ends. */
int late_plan_take(struct job *job, struct plan **out);

/* Whether the plan has the ranks that --stdin and --pty name. false: the job ends. */
bool late_plan_check_ranks(struct job *job);
