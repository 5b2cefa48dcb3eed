/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of this folder need, and nobody else. */
#pragma once

#include "driver/job/job.h"

/* The problem of a host that did not find `program`. If this machine has the program, the text says
 * so, and that each host needs it. `path` is a PATH value, `wdir` the folder of the workers (NULL:
 * ours). The caller's. */
char *program_here_text(const char *problem, const char *program, const char *path,
                        const char *wdir);

/* Call it once, when all nodes are up and before PREPARE. The caller owns `out`, which is
 * job->plan from then on. -1: the plan cannot be made; the job ends. */
int late_plan_take(struct job *job, struct plan **out);

/* Whether the plan has the ranks that --stdin and --pty name. false: the job ends. */
bool late_plan_check_ranks(struct job *job);
