/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel allows to an agent, but not to its helper process (stacks/tasks.h): the helper
 * asks the agent for it, over a socket. The agent decodes nothing. It opens the memory of a
 * process, reads one line of the kernel, or stops a thread and copies its registers and stack. It
 * also keeps the counters of call_watch.h, which must outlive the helper.
 *
 * A stop can take long. So a thread does it, whose end also lets go of the thread that it stopped.
 */
#pragma once

#include "io/loop.h"
#include "stacks/call_watch.h"
#include "stacks/tasks.h"

/* The agent's end. Takes `fd`. The first question about a call makes the watches, which are the
 * caller's to destroy; NULL: there is no such question. */
struct stack_door;
struct stack_door *stack_door_create(struct loop *loop, int fd, struct call_watches **watches);
void stack_door_destroy(struct stack_door *door); /* accepts NULL */

/* The helper's end is `fd`, which lives longer. What the helper may do itself it does itself. */
struct rights stack_door_rights(int *fd);
/* As call_watches_number(). */
uint64_t stack_door_call_number(int fd, pid_t pid, pid_t tid, uint64_t address);
