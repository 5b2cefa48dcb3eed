/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel allows to an agent, but not to its helper process (stacks/tasks.h): the helper
 * asks the agent for it, over a socket. The agent decodes nothing. It opens the memory of a
 * process, reads one line of the kernel, or stops a thread and copies its registers and stack.
 *
 * A stop can take long. So a thread does it, whose end also lets go of the thread that it stopped.
 */
#pragma once

#include "io/loop.h"
#include "stacks/tasks.h"

/* The agent's end. Takes `fd`. */
struct stack_door;
struct stack_door *stack_door_create(struct loop *loop, int fd);
void stack_door_destroy(struct stack_door *door); /* accepts NULL */

/* The helper's end: what it may do itself it does itself. */
struct stack_door_way {
    int fd;
};
struct rights stack_door_rights(struct stack_door_way *way);
