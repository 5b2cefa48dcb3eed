/* SPDX-License-Identifier: Apache-2.0 */
/* `hvdrun stacks`: answers to clients of the control socket that ask where the ranks are. */
#pragma once

#include "driver/control/later.h"
#include "driver/job/job.h"

struct job_stacks;

struct job_stacks *job_stacks_create(struct job *job);
/* -1: there is no such rank, or none runs. 0: `later` is taken. `ranks` is NULL for all.
 * `native`: with native frames. */
int job_stacks_ask(struct job_stacks *stacks, const char *ranks, bool native,
                   struct control_later *later, struct error *err);
/* Clients that still wait get the answer that the job has ended. Accepts NULL. */
void job_stacks_destroy(struct job_stacks *stacks);
