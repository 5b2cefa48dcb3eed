/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The standard input of the job. It is read only as far as the ranks that get it have granted
 * credit. So a rank that does not read costs no memory, and nothing is read ahead of need. With
 * --stdin all the slowest rank sets the pace. A terminal is read only in the foreground, so it
 * never stops a job in the background. A read error ends the job.
 */
#pragma once

#include "driver/job/job.h"

/* The ranks of the present plan can read now; ends the feed of those before. */
void stdin_feed_begin(struct job *job);
void stdin_feed_stop(struct stdin_feed *feed); /* accepts NULL */
