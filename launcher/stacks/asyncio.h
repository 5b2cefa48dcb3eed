/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suspended tasks of asyncio, which are on the stack of no thread. Shows the coroutines from the
 * task's own to the one that waits. For CPython 3.8 to 3.13, if asyncio's own event loop runs.
 * Pure: see memory.h.
 *
 * The frame of the event loop leads to the list of all tasks, as
 * asyncio.base_events.tasks._all_tasks.
 */
#pragma once

#include "stacks/python.h"

#define ASYNCIO_TASKS_MAX 200
#define ASYNCIO_CHAIN_MAX 60

/* The event loop runs in this stack: the address of its frame; 0: it does not. */
uint64_t asyncio_loop_frame(const struct python_stack *stack);

/* Calls `each` for each task that is suspended, with a stack that is borrowed. Tasks that go on
 * meanwhile can be missing. */
void asyncio_tasks(struct python *python, uint64_t loop_frame,
                   void (*each)(void *context, const struct python_stack *stack), void *context);
