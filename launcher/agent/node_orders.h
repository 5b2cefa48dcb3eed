/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's frames about the whole node: its place in the job, epochs, credit, suspension. What
 * `body` is, the table of agent/orders.c says.
 */
#pragma once

#include "agent/agent_state.h"
#include "wire/frame.h"

void node_orders_welcome(struct agent *agent, const struct frame_header *header, const void *body);
void node_orders_prepare(struct agent *agent, const struct frame_header *header, const void *body);

void node_orders_heartbeat(struct agent *agent, const struct frame_header *header,
                           const void *body);
void node_orders_suspend(struct agent *agent, const struct frame_header *header, const void *body);
void node_orders_resume(struct agent *agent, const struct frame_header *header, const void *body);
void node_orders_epoch(struct agent *agent, const struct frame_header *header, const void *body);
void node_orders_credit(struct agent *agent, const struct frame_header *header, const void *body);
void node_orders_deadline(struct agent *agent, const struct frame_header *header, const void *body);
