/* SPDX-License-Identifier: Apache-2.0 */
/* What the job prints: its output as the settings want it, its log on top of that, and what follows
 * when nobody takes it any more. */
#pragma once

#include "driver/job/job.h"

/* job->output and job->log; says what the command line is warned of. */
int job_open_output(struct job *job, struct error *err);
