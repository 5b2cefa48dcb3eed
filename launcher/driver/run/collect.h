/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes output frames to the output room, and credit back to the agents (D4). The credit belongs
 * to the agent that sent the bytes. When they have been written, another worker on another node may
 * have their seat.
 */
#pragma once

#include "driver/job/agent_frame.h"
#include "driver/job/job.h"

struct collect;

/* For output_ops.consumed. */
void collect_consumed(struct collect *collect, int seat, size_t bytes);
