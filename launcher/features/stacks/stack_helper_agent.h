/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The helper process that reads stacks of workers and of processes below them. What it reads can do
 * it harm. The kernel kills a process with SIGBUS if a file that it has mapped becomes shorter. It
 * holds a process that needs a page from a file system that does not answer, even after SIGKILL. So
 * the agent leaves the helper behind (features/stacks/stack_pool_agent.h).
 *
 * On stdin it gets each StackWork, and it writes a StackAnswer for it to stdout, in this order
 * (agent/modules.h). It ends with stdin. If it ends while it has stopped a thread of a
 * worker, the kernel lets that thread go on.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "io/helpers.h"
#include "stacks/process.h"
#include "wire/control.pb-c.h"

/* What a helper process answers of one process: its stacks, and what the kernel says of it. */
#define STACK_RANK_BYTES ((size_t)64 << 10) /* of text, for one worker */

/* Starts one. `program` is a path of hvdrun-agent. `*stream` and `*door` are the agent's ends; the
 * stream does not block, and the door is for stack_door_create(). -1 */
pid_t stack_helper_start(struct helpers *helpers, const char *program,
                         void (*exited)(void *context, int wait_status), void *context, int *stream,
                         int *door, struct error *err);

#define STACK_ANSWER_BYTES ((size_t)4 << 20) /* a longer one is refused */

/* Takes the answer at the front of what the agent has read: 1, and it is the caller's. 0: not all
 * of it is there. -1: it is none. */
int stack_helper_answer(struct buf *bytes, Hvdrun__StackAnswer **answer);

/* "hvdrun's helper process was killed by SIGBUS". The caller frees it. */
char *stack_helper_death(int wait_status);

/* What a stack costs of STACK_RANK_BYTES. */
size_t stack_answer_cost(const Hvdrun__PythonStack *stack);

/* A stack without frames. The caller frees it with hvdrun__python_stack__free_unpacked(). */
Hvdrun__PythonStack *stack_answer_trouble(const char *trouble);
