/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's frames about the whole node: its place in the job, epochs, credit, suspension. A
 * handler ignores a body that it cannot read, except where it says otherwise.
 */
#pragma once

#include "agent/agent_state.h"
#include "wire/frame.h"

/* An unreadable body of these two is a breach of the protocol. */
void node_orders_welcome(struct agent *agent, const struct frame_header *header,
                         const uint8_t *body);
void node_orders_prepare(struct agent *agent, const struct frame_header *header,
                         const uint8_t *body);

void node_orders_heartbeat(struct agent *agent, const struct frame_header *header,
                           const uint8_t *body);
void node_orders_suspend(struct agent *agent, const struct frame_header *header,
                         const uint8_t *body);
void node_orders_resume(struct agent *agent, const struct frame_header *header,
                        const uint8_t *body);
void node_orders_epoch(struct agent *agent, const struct frame_header *header, const uint8_t *body);
void node_orders_credit(struct agent *agent, const struct frame_header *header,
                        const uint8_t *body);
void node_orders_notify(struct agent *agent, const struct frame_header *header,
                        const uint8_t *body);
void node_orders_deadline(struct agent *agent, const struct frame_header *header,
                          const uint8_t *body);
void node_orders_ranks_ended(struct agent *agent, const struct frame_header *header,
                             const uint8_t *body);
void node_orders_kv_reply(struct agent *agent, const struct frame_header *header,
                          const uint8_t *body);
void node_orders_check(struct agent *agent, const struct frame_header *header, const uint8_t *body);
