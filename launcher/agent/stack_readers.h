/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that read the stacks of many processes, while the caller does other work.
 *
 * The kernel can make a reader wait: it locks the memory map of a process that hangs in mmap() or
 * munmap(). A reader that waits is left behind, and another one goes on with the next process. When
 * the process ends, the reader goes on and ends too.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stacks/process.h"
#include "stacks/process_native.h"

struct stack_item {
    size_t rank; /* the caller's */
    pid_t pid;
    bool done;   /* the process was read, in time */
    bool python; /* it runs Python; otherwise `stacks` can only have native frames */
    struct process_stacks stacks;
};

struct stack_readers;

/* Begins to read these processes, those that come first at first, until `deadline_ns` of
 * clock_mono_ns(). `module` is NULL, or reads the native frames as well. */
struct stack_readers *stack_readers_create(const struct stack_item *items, size_t count,
                                           const struct unwind_module *module, int64_t deadline_ns);

/* Looks after the readers: call it every few milliseconds. true: nothing more will come. */
bool stack_readers_advance(struct stack_readers *readers);

/* Fills in the items that were read, and leaves the others to themselves. `items` may be NULL. The
 * caller destroys the stacks. */
void stack_readers_end(struct stack_readers *readers, struct stack_item *items);
