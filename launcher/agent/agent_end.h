/* SPDX-License-Identifier: Apache-2.0 */
/* How an agent comes to an end: that of its workers, when the driver says END or is lost, and its
 * own, at QUIT or when nobody waits for it any more. */
#pragma once

#include "agent/agent_state.h"

struct ending *agent_end_create(struct agent *agent);

/* ENDED when no process is left and every stream has been read. */
void agent_end_check(struct agent *agent);

/* After ENDED everything may begin anew: the next epoch, or another end. */
void agent_end_anew(struct agent *agent);

/* The driver or the keeper is no more: the workers are ended, then the agent ends. */
void agent_end_driver_lost(struct agent *agent);

/* END and QUIT have come. */
void agent_end_order(struct agent *agent, uint32_t epoch, const uint8_t *body, size_t length);
void agent_end_quit(struct agent *agent);
