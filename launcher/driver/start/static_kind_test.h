/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of static_kind need, and nobody else. */
#pragma once

#include "driver/job/job.h"
#include "driver/start/static_kind.h"

/* Call it once, when all nodes are up and before PREPARE. The caller owns `out`, which is
 * job->plan from then on. -1: the plan cannot be made; the job ends. */
int late_plan_take(struct job *job, struct plan **out);

/* Whether the plan has the ranks that --stdin and --pty name. false: the job ends. */
bool late_plan_check_ranks(struct job *job);
