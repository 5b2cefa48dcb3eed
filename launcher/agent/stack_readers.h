/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that read the Python stacks of many processes.
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

struct stack_item {
    size_t rank; /* the caller's */
    pid_t pid;
    bool done;   /* the process was read, in time */
    bool python; /* it runs Python; then `stacks` is filled in */
    struct process_stacks stacks;
};

/* Fills in as many items as it can until `deadline_ns`. Items that come first are read first. The
 * caller destroys the stacks. */
void stack_readers_run(struct stack_item *items, size_t count, int64_t deadline_ns);
