/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's frames about the whole node: its place in the job, epochs, credit, the end. Those
 * about workers go on to orders.h.
 */
#pragma once

#include "agent/agent_state.h"

/* A frame of the driver cannot be accepted: reports to it why. */
void node_orders_refused(struct agent *agent, const char *why);

/* Any frame of the driver. One out of turn is a breach of protocol: the agent drops the link. */
void node_orders_frame(struct agent *agent, const struct frame_header *header, const uint8_t *body);
