/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The late plan: a host that came without a slot count has as many slots as GPUs, which only its
 * agent knows. Such a job begins with a provisional plan (one slot for each of these hosts), whose
 * hosts are all called; when all have said HELLO the plan is made once more, and this one counts.
 * Hosts that get no rank by it are left.
 */
#pragma once

#include "driver/job/job.h"

/* Does nothing in a job whose slots were all known. false: the plan cannot be made; the job ends.
 * Once, when all nodes are up and before PREPARE. */
bool late_plan_take(struct job *job);
void late_plan_destroy(struct job *job);
