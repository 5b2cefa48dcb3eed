/* SPDX-License-Identifier: Apache-2.0 */
/* What a helper process answers of one process: its stacks, and what the kernel says of it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "stacks/process.h"
#include "wire/control.pb-c.h"

#define STACK_RANK_BYTES ((size_t)64 << 10) /* of text, for one worker */

/* What a stack costs of STACK_RANK_BYTES. */
size_t stack_answer_cost(const Hvdrun__PythonStack *stack);

/* A stack without frames. The caller frees it with hvdrun__python_stack__free_unpacked(). */
Hvdrun__PythonStack *stack_answer_trouble(const char *trouble);

/* Fills in the stacks and the remark. Without frames of Python, one line has the name of the
 * process and what it does, and native frames if these were read. */
void stack_answer_fill(const struct rights *rights, pid_t pid, const struct process_stacks *source,
                       Hvdrun__StackAnswer *out);
void stack_answer_clear(Hvdrun__StackAnswer *answer); /* only what was filled in */
