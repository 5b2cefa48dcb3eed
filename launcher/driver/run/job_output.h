/* SPDX-License-Identifier: Apache-2.0 */
/* Creates the output of the job as the settings want it, and its log on top of it. Ends the job
 * when its output cannot be delivered. */
#pragma once

#include "driver/job/job.h"

/* Opens job->output and job->log, and prints the warnings about the command line. */
int job_open_output(struct job *job, struct error *err);
