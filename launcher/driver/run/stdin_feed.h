/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The job's standard input, read only as far as the ranks that get it have granted credit, so a
 * rank that does not read costs no memory and no byte is read ahead of need. With --stdin all the
 * slowest rank sets the pace. A terminal is only read in the foreground, so that a job in the
 * background is never stopped by it. What cannot be read ends the job.
 */
#pragma once

#include "driver/job/agent_frame.h"
#include "driver/job/job.h"

/* Before anything is started: -1 when nothing can be read from it, whoever tries. */
int stdin_feed_check(const struct job *job, struct error *err);

struct stdin_feed *stdin_feed_create(struct job *job);
void stdin_feed_destroy(struct stdin_feed *feed); /* accepts NULL */
void stdin_feed_stop(struct stdin_feed *feed);    /* accepts NULL */
/* STDIN_CREDIT: a worker has room for more. */
int stdin_feed_credit(struct job *job, struct node_link *node, const struct agent_frame *frame);
