/* SPDX-License-Identifier: Apache-2.0 */
/* The last steps of a job: agents that have ended their workers get QUIT; when all are gone, there
 * is a verdict; when all output is written, the loop stops. */
#pragma once

#include "driver/job/job.h"

/* For job->advance: takes the next step if its time has come. */
void finish_advance(struct job *job);
