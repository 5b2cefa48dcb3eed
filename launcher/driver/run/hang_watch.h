/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notices a job that hangs: asks all agents for the pulse of their ranks (PULSE_REQUEST), and lets
 * model/hang judge. --hang-warning, --hang-timeout and --on-hang say what follows.
 */
#pragma once

#include "driver/job/agent_frame.h"
#include "driver/job/job.h"

struct hang_watch;

struct hang_watch *hang_watch_create(struct job *job); /* NULL: nobody wants to know */
void hang_watch_destroy(struct hang_watch *watch);     /* accepts NULL */

/* PULSE: what the workers of a node have used. */
int hang_watch_pulse(struct job *job, struct node_link *node, const struct agent_frame *frame);
