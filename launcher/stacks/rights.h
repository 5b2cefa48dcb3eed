/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel allows only to those who may trace a process (PTRACE_MODE_ATTACH). With
 * kernel.yama.ptrace_scope 1, that is an ancestor of the process: our agent, and not a helper
 * process of the agent. So those who read stacks get these calls as a table.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

struct snapshot_order;

struct rights {
    void *context;
    /* A descriptor of /proc/PID/mem, which the caller closes; -1 and errno. */
    int (*memory)(void *context, pid_t pid);
    /* Appends /proc/PID/task/TID/syscall; -1: it cannot be read. */
    int (*call)(void *context, pid_t pid, pid_t tid, struct buf *out);
    /* As snapshot_stopping(). */
    void (*stop)(void *context, pid_t pid, int memory_fd, int64_t deadline_ns,
                 struct snapshot_order *orders, size_t count);
};

/* Why the kernel does not let us read or stop a process, such as "its memory cannot be read:
 * Permission denied (kernel.yama.ptrace_scope is 2)". It names the setting of the Yama security
 * module if that can be the cause. The caller's. */
char *refusal(const char *what, int error);
