/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel says of one thread of another process, and to whom it says it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

/*
 * What the kernel allows only to those who may trace a process (PTRACE_MODE_ATTACH). With
 * kernel.yama.ptrace_scope 1, that is an ancestor of the process: our agent, and not a helper
 * process of the agent. So those who read stacks get these calls as a table.
 */
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

struct task {
    pid_t inner;                 /* its number in its own PID namespace */
    bool nested;                 /* that namespace is not ours */
    char name[32];               /* printable */
    bool runs;                   /* on a processor, or waits for one */
    bool stuck;                  /* it waits in the kernel and cannot be interrupted */
    unsigned long long switches; /* how often it left its processor */
};

/* -1: there is no such thread. */
int task_read(pid_t pid, pid_t tid, struct task *out);

/* The thread of a process with this number in its own PID namespace; 0: none. */
pid_t task_find(pid_t pid, pid_t inner);

/* The number of the system call that it is in; -1: none, or not readable. `*running`: it runs. */
long task_call(const struct rights *rights, pid_t pid, pid_t tid, bool *running);

/* Its stack pointer and its next instruction. -1: it runs, or they cannot be read. */
int task_place(const struct rights *rights, pid_t pid, pid_t tid, uint64_t *sp, uint64_t *pc);

bool task_is_stuck(pid_t pid, pid_t tid);

/* It ends now, or has ended: if something cannot be read, that is as expected. */
bool task_is_ending(pid_t pid, pid_t tid);
