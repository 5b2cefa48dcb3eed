/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers about the topic "states": what each worker is doing, and its stacks. Helper processes
 * read these, and the agent goes on meanwhile.
 */
#pragma once

#include "agent/ask.h"
#include "agent/crews.h"
#include "agent/worker_lines.h"
#include "io/helpers.h"
#include "stacks/stack.h"

struct state_desk;

/* `program`: a path of hvdrun-agent. All are borrowed. */
struct state_desk *state_desk_create(struct loop *loop, struct helpers *helpers,
                                     const char *program);
/* What was asked for and is not answered yet gets no answer. Accepts NULL. */
void state_desk_destroy(struct state_desk *desk);

/* The answer comes as soon as the stacks are there. `lines` (may be NULL) say how far each worker
 * has come. */
void state_desk_ask(struct state_desk *desk, const struct crews *crews,
                    const struct worker_lines *lines, const struct asked *asked,
                    enum look_depth depth);
