/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of state_desk need, and nobody else. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "features/stacks/stack_pool_agent.h"
#include "node/descendants.h"
#include "stacks/stack.h"
#include "wire/control.pb-c.h"

struct rank_stacks;

/* By their processes, as many as there are seats in the message; 0: it does not run. `done` comes
 * once, from the loop, and may destroy the stacks. */
struct rank_stacks *rank_stacks_create(struct stack_pool *pool, const pid_t *pids, size_t count,
                                       const struct descendants_table *processes,
                                       enum look_depth depth, void (*done)(void *context),
                                       void *context);
void rank_stacks_destroy(struct rank_stacks *stacks); /* accepts NULL */

/* Appends to message->stacks and message->remarks; once, when `done` has come. */
void rank_stacks_fill(struct rank_stacks *stacks, Hvdrun__StateReport *message);
void rank_stacks_free(Hvdrun__StateReport *message); /* only what was appended */
