/* SPDX-License-Identifier: Apache-2.0 */
/* The composing page of the agent: all parts that answer questions (agent/part.h). */
#pragma once

#include "agent/part.h"

/* ASK. NULL, or how it breaks the protocol. */
const char *agent_parts_ask(struct agent *agent, const Hvdrun__Ask *message);
void agent_parts_close(struct agent *agent);
