/* SPDX-License-Identifier: Apache-2.0 */
/* The reports of agents about their workers: started, exited, finished, aborted, being killed. */
#pragma once

#include "driver/job/agent_frame.h"
#include "driver/job/job.h"

/* Whether the worker on this seat runs on this node. */
bool exits_seat_of(const struct job *job, const struct node_link *node, uint32_t seat);
