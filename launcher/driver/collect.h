/* SPDX-License-Identifier: Apache-2.0 */
/* Output frames into the output room, and credit back to the agents (D4). */
#pragma once

#include "driver/job.h"

int collect_bytes(struct job *job, struct node_link *node, const uint8_t *body, size_t length);

/* For output_ops.consumed. */
void collect_consumed(struct job *job, int rank, size_t bytes);
