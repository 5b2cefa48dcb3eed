/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suspended tasks of asyncio, which are on the stack of no thread. Shows the coroutines from the
 * task's own to the one that waits. For CPython 3.8 to 3.14. Pure: see memory.h.
 *
 * Up to 3.13, the frame of asyncio's own event loop leads to the set of all tasks, as
 * asyncio.base_events.tasks._all_tasks. In 3.14, each thread has a list of its tasks behind its
 * PyThreadState.
 */
#pragma once

#include "stacks/python.h"

#define ASYNCIO_TASKS_MAX 200
#define ASYNCIO_CHAIN_MAX 60

/* asyncio's event loop runs in this stack: the address of its frame; 0: it does not. */
uint64_t asyncio_loop_frame(const struct python_stack *stack);

/* Where the tasks of an interpreter are looked for. */
struct asyncio_place {
    uint64_t loop_frame; /* of any thread; 0: none */
    const struct python_thread *threads;
    size_t count;
};

/* Calls `each` for each task that is suspended, at most ASYNCIO_TASKS_MAX, with a stack that is
 * borrowed. Tasks that go on meanwhile can be missing. */
void asyncio_tasks(struct python *python, const struct asyncio_place *place,
                   void (*each)(void *context, const struct python_stack *stack), void *context);
