/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The standard input of the job. It is read only as far as the ranks that get it have granted
 * credit. So a rank that does not read costs no memory, and nothing is read ahead of need. With
 * --stdin all the slowest rank sets the pace. A terminal is read only in the foreground, so it
 * never stops a job in the background. A read error ends the job.
 */
#pragma once

#include "driver/job/agent_frame.h"
#include "driver/job/job.h"

/* Call it before anything starts. -1: the standard input can never be read. */
int stdin_feed_check(const struct job *job, struct error *err);

struct stdin_feed *stdin_feed_create(struct job *job);
void stdin_feed_destroy(struct stdin_feed *feed); /* accepts NULL */
void stdin_feed_stop(struct stdin_feed *feed);    /* accepts NULL */
/* STDIN_CREDIT: a worker has room for more. */
int stdin_feed_credit(struct job *job, struct node_link *node, const struct agent_frame *frame);
