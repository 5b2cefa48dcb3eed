/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --timeout: before the job is ended, every agent is asked what its workers are doing (state, wait
 * channel, stack where readable); what has come after a short wait is printed.
 */
#pragma once

#include "driver/job/job.h"

void state_report_begin(struct job *job); /* the time limit has passed */
int state_report_got(struct job *job, struct node_link *node, const uint8_t *body, size_t length);
