/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child that has ended, all but: its first thread is gone, and the kernel holds another one,
 * which not even SIGKILL ends. That is a helper process that reads stacks, and waits for a file
 * system that does not answer (agent/stack_helper.h). waitpid() does not return for it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Since when nothing is left below us but such children. */
struct held_children {
    int64_t since_ms; /* 0: that is not so */
};

/* It has been so for longer than a process takes to end on a busy machine. */
bool held_children_only(struct held_children *children);

/* The wait status that such a child will have; -1: it is none. */
int held_child_status(pid_t pid);

/* A thread of it, other than its first one, waits now, and does not use the processor. */
bool held_child_waits(pid_t pid);
