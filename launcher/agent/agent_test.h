/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of agent need, and nobody else. */
#pragma once

#include "agent/agent.h"
#include "agent/keeper.h"
#include "agent/post.h"
#include "io/helpers.h"
#include "io/loop.h"
#include "node/facts.h"

/* `helpers`, `post` and `facts` are borrowed; facts->gpus becomes what was found. */
struct hello *hello_create(struct loop *loop, struct helpers *helpers, const struct post *post,
                           struct node_facts *facts, const struct agent_config *config);
void hello_destroy(struct hello *hello); /* accepts NULL */

/* Takes the descriptor. `lost` is called once, from the loop, when the keeper is gone. NULL when
 * `fd` is -1: there is no keeper. */
struct keeper_line *keeper_line_create(struct loop *loop, int fd, void (*lost)(void *context),
                                       void *context);

/* The agent is about to end. SIGCONT goes to the keeper: one that was stopped must end with its
 * agent, and nobody else on its host would let it go on. Accepts NULL. */
void keeper_line_destroy(struct keeper_line *line);
