/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one author of job->verdict. The kind of the job judges its workers and hosts; above that
 * stand a scheduler's warning, a queue that refused the job, and output that nobody took.
 */
#pragma once

#include "driver/job/job.h"

/* All is over. Made again when one of these becomes known later, such as a reader that went away
 * while the report was written. */
void verdict_make(struct job *job);
