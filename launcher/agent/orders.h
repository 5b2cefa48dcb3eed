/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every frame of the driver: a table has the handler of each type, and when it may come. A type
 * without a line is a breach of the protocol.
 */
#pragma once

#include "agent/agent_state.h"
#include "wire/frame.h"

void orders_frame(struct agent *agent, const struct frame_header *header, const uint8_t *body);
/* The same, but it says nothing about the link to the driver. */
void orders_take(struct agent *agent, const struct frame_header *header, const uint8_t *body);

/* A frame of the driver cannot be accepted: reports to it why. */
void orders_refused(struct agent *agent, const char *why);
