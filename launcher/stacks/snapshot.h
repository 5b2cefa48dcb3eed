/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registers of a thread and a copy of the inner part of its stack. Its frames can be found from
 * these while it goes on.
 *
 * A thread that waits need not be stopped: the kernel says where its stack is, and what the other
 * registers hold is mostly in memory. That is not enough for code that was compiled with frame
 * pointers, since the first of them is in a register. Such a thread is stopped for as long as two
 * reads take, and so is a thread that runs. Whatever happens, it goes on again. The thread of ours
 * that traces it ends at once, and then the kernel lets go of what that thread has traced.
 *
 * To be stopped has one effect: a few system calls of the thread return EINTR, as epoll_wait does.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "stacks/module/unwind_module.h"
#include "stacks/tasks.h"

#define SNAPSHOT_STACK ((size_t)128 << 10) /* bytes; frames further out are read later */

struct snapshot {
    struct unwind_registers registers;
    uint64_t stack_at;
    unsigned char *stack;
    size_t stack_length;
};

/* `memory_fd` is /proc/PID/mem. -1: the thread runs, or cannot be read without a stop. */
int snapshot_waiting(const struct rights *rights, pid_t pid, pid_t tid, int memory_fd,
                     struct snapshot *out);

struct snapshot_order {
    pid_t tid;
    int error; /* 0: `out` is filled in; ETIMEDOUT: the thread did not stop, or it is too late */
    struct snapshot out;
};

/* Stops these threads of a process, one after another. `deadline_ns` is of clock_mono_ns(). */
void snapshot_stopping(pid_t pid, int memory_fd, int64_t deadline_ns, struct snapshot_order *orders,
                       size_t count);

void snapshot_destroy(struct snapshot *snapshot);

/* The rights of this process itself. */
extern const struct rights rights_own;
