/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --timeout: how long the workers may run. After that time the driver asks every agent what its
 * workers are doing (state, wait channel, stack if readable). After a short wait it prints the
 * answers, and the job ends.
 */
#pragma once

#include "driver/job/agent_frame.h"
#include "driver/job/job.h"

struct time_limit;

struct time_limit *time_limit_create(struct job *job);
void time_limit_destroy(struct time_limit *limit); /* accepts NULL */

void time_limit_begin(struct time_limit *limit); /* the job runs */
void time_limit_stop(struct time_limit *limit);
void time_limit_pause(struct time_limit *limit, bool paused);

/* STATE_REPORT: what the workers of a node are doing. */
int time_limit_state(struct job *job, struct node_link *node, const struct agent_frame *frame);
