/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stacks of workers and of the processes below them, for STATE_REPORT: their Python frames, and
 * the native ones if they are wanted. A process with neither has one line there, with its wait
 * channel and system call. Only native frames need a worker to be stopped.
 *
 * Helper processes read them (agent/stack_pool.h). What is not read within the limit is left out. A
 * shell or numactl often starts the program of a worker. So the first of its processes that runs
 * Python counts as the worker, and all others are children.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "agent/stack_pool.h"
#include "node/descendants.h"
#include "wire/control.pb-c.h"

#define RANK_STACKS_MS 1200        /* below the 2 s that the driver waits for the answer */
#define RANK_STACKS_NATIVE_MS 6000 /* below the 8 s, likewise */

struct rank_stacks;

/* By their processes, as many as there are seats in the message; 0: it does not run. `done` comes
 * once, from the loop, and may destroy the stacks. */
struct rank_stacks *rank_stacks_create(struct stack_pool *pool, const pid_t *pids, size_t count,
                                       const struct descendants_table *processes, bool native,
                                       void (*done)(void *context), void *context);
void rank_stacks_destroy(struct rank_stacks *stacks); /* accepts NULL */

/* Appends to message->stacks and message->remarks; once, when `done` has come. */
void rank_stacks_fill(struct rank_stacks *stacks, Hvdrun__StateReport *message);
void rank_stacks_free(Hvdrun__StateReport *message); /* only what was appended */
