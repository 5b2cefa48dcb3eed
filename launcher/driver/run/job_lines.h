/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines of workers to their agents (docs/runtime.md), as the driver sees them. It sends the
 * ranks of the present epoch that have ended to the agents that have such a line. It sends nothing
 * to other agents, so a job without libhvd pays nothing. It prints what workers report about
 * stalls.
 */
#pragma once

#include "driver/job/agent_frame.h"
#include "driver/job/job.h"

struct job_lines;

struct job_lines *job_lines_create(struct job *job);
void job_lines_destroy(struct job_lines *lines); /* accepts NULL */

/* The worker on this seat has ended; its record is written. */
void job_lines_rank_ended(struct job_lines *lines, int seat);
/* The node is lost, and with it the workers that run there. */
void job_lines_node_lost(struct job_lines *lines, const struct node_link *node);

/* Frames */
int job_lines_opened(struct job *job, struct node_link *node, const struct agent_frame *frame);
int job_lines_stall(struct job *job, struct node_link *node, const struct agent_frame *frame);
