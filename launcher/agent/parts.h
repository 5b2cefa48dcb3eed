/* SPDX-License-Identifier: Apache-2.0 */
/* The composing page of the agent: all its parts (agent/part.h). */
#pragma once

#include "agent/part.h"

void agent_parts_open(struct agent *agent);
void agent_parts_close(struct agent *agent);
void agent_parts_adapt(struct agent *agent, Hvdrun__Prepare *prepare);
void agent_parts_crew(struct agent *agent, struct crew_config *config,
                      const Hvdrun__Prepare *prepare, bool joins);
void agent_parts_epoch(struct agent *agent, uint32_t epoch);

void agent_parts_stranger(struct agent *agent, const struct reaper_exit *exit);

/* ASK. NULL, or how it breaks the protocol. */
const char *agent_parts_ask(struct agent *agent, const Hvdrun__Ask *message);
const struct agent_order *agent_parts_order(uint8_t type); /* NULL: no part takes the frame */
