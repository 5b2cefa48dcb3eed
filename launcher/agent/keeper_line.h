/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's end of the line to its keeper: see agent/keeper.h. */
#pragma once

#include "agent/keeper.h"
#include "io/loop.h"

struct keeper_line;

/* Takes the descriptor. `lost` is called once, from the loop, when the keeper is gone. NULL when
 * `fd` is -1: there is no keeper. */
struct keeper_line *keeper_line_create(struct loop *loop, int fd, void (*lost)(void *context),
                                       void *context);
/* The agent is about to end. SIGCONT goes to the keeper: one that was stopped must end with its
 * agent, and nobody else on its host would let it go on. Accepts NULL. */
void keeper_line_destroy(struct keeper_line *line);
void keeper_line_beat(struct keeper_line *line, int64_t silence_ms, int64_t grace_ms);
