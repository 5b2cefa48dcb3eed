/* SPDX-License-Identifier: Apache-2.0 */
/* The end of an agent. It ends its workers when the driver says END or is lost. It ends itself at
 * QUIT, or when no driver waits for it. */
#pragma once

#include "agent/agent_state.h"

struct ending *agent_end_create(struct agent *agent);

/* Sends ENDED once every process has ended and every stream has been read. */
void agent_end_check(struct agent *agent);

/* After ENDED: gets ready for the next epoch, or for another END. */
void agent_end_anew(struct agent *agent);

/* The driver or the keeper is lost: ends the workers, then the agent. */
void agent_end_driver_lost(struct agent *agent);

/* The same for a driver that was silent for too long, after a FAREWELL. It may only be stopped, and
 * read that later. */
void agent_end_driver_silent(struct agent *agent, int64_t silence_ms);

/* The driver broke the protocol: reports `what`, then ends as if the driver were lost. */
void agent_end_breach(struct agent *agent, const char *what);

/* The frames END and QUIT. */
void agent_end_order(struct agent *agent, uint32_t epoch, const Hvdrun__End *message);
void agent_end_quit(struct agent *agent, const Hvdrun__Quit *message);
