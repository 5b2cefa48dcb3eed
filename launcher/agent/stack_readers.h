/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that read the stacks of many processes, while the caller does other work.
 *
 * The kernel can hold a reader: see held_readers.h. Such a reader is left behind, and another one
 * goes on with the next process.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/held_readers.h"
#include "stacks/process.h"
#include "stacks/process_native.h"

struct stack_item {
    size_t rank; /* the caller's */
    pid_t pid;
    bool done;   /* the process was read, in time */
    bool held;   /* otherwise: the kernel holds who reads it */
    bool python; /* it runs Python; otherwise `stacks` can only have native frames */
    struct process_stacks stacks;
};

struct stack_readers;

/* Begins to read these processes, those that come first at first, until `deadline_ns` of
 * clock_mono_ns(). `module` is NULL, or reads the native frames as well. */
struct stack_readers *stack_readers_create(const struct stack_item *items, size_t count,
                                           struct held_readers *held,
                                           const struct unwind_module *module, int64_t deadline_ns);

/* Looks after the readers: call it every few milliseconds. true: nothing more will come. */
bool stack_readers_advance(struct stack_readers *readers);

/* Fills in the items that were read, and leaves the others to themselves. `items` may be NULL. The
 * caller destroys the stacks. */
void stack_readers_end(struct stack_readers *readers, struct stack_item *items);
