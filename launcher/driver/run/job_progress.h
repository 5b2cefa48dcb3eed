/* SPDX-License-Identifier: Apache-2.0 */
/* The frames in which agents say how far their workers are. */
#pragma once

#include "driver/job/agent_frame.h"

int job_progress_take(struct job *job, struct node_link *node, const struct agent_frame *frame);
