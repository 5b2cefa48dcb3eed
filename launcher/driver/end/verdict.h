/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one author of job->verdict. The kind of the job judges its workers and hosts; above that
 * stand a scheduler's warning, a queue that refused the job, and output that nobody took.
 */
#pragma once

#include "driver/job/job.h"

/* All is over; once more when the queue has refused the job. */
void verdict_make(struct job *job);

/* The output failed after that, while the report was written: success becomes a failure. */
void verdict_note_output(struct job *job);
