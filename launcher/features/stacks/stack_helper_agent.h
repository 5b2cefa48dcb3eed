/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The helper process that reads stacks of workers and of processes below them. What it reads can do
 * it harm. The kernel kills a process with SIGBUS if a file that it has mapped becomes shorter. It
 * holds a process that needs a page from a file system that does not answer, even after SIGKILL. So
 * the agent leaves the helper behind (features/stacks/stack_pool_agent.h).
 *
 * On stdin it gets each StackWork, and it writes a StackAnswer for it to stdout, in this order
 * (agent/helper_program.h). It ends with stdin. If it ends while it has stopped a thread of a
 * worker, the kernel lets that thread go on.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "stacks/process.h"
#include "wire/control.pb-c.h"

#define STACK_HELPER_WORD "--stacks" /* the argument that makes a program the helper */
#define STACK_HELPER_NAME "hvdrun-stacks"

/* What a helper process answers of one process: its stacks, and what the kernel says of it. */
#define STACK_RANK_BYTES ((size_t)64 << 10) /* of text, for one worker */

/* What a stack costs of STACK_RANK_BYTES. */
size_t stack_answer_cost(const Hvdrun__PythonStack *stack);

/* A stack without frames. The caller frees it with hvdrun__python_stack__free_unpacked(). */
Hvdrun__PythonStack *stack_answer_trouble(const char *trouble);
