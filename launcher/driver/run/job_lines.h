/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines of workers to their agents (docs/runtime.md), as the driver sees them. It sends the
 * ranks of the present epoch that have ended to the agents that have such a line. It sends nothing
 * to other agents, so a job without libhvd pays nothing. It prints what workers report about
 * stalls.
 */
#pragma once

#include "driver/job/job.h"

struct job_lines;

/* The worker on this seat has ended; its record is written. */
void job_lines_rank_ended(struct job_lines *lines, int seat);
