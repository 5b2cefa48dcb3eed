/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread of another process: what the kernel says of it, and to whom, and its registers and
 * stack.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "stacks/module/unwind_module.h"

#define SNAPSHOT_STACK ((size_t)128 << 10) /* bytes; frames further out are read later */

struct snapshot_order;

/*
 * What the kernel allows only to those who may trace a process (PTRACE_MODE_ATTACH). With
 * kernel.yama.ptrace_scope 1, that is an ancestor of the process: our agent, and not a helper
 * process of the agent. So those who read stacks get these calls as a table.
 */
struct rights {
    void *context;
    /* A descriptor of /proc/PID/mem, which the caller closes; -1 and errno. */
    int (*memory)(void *context, pid_t pid);
    /* Appends /proc/PID/task/TID/syscall; -1: it cannot be read. */
    int (*call)(void *context, pid_t pid, pid_t tid, struct buf *out);
    /* Stops these threads of a process, one after another. `deadline_ns` is of clock_mono_ns(). */
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

/* It ends now, or has ended: if something cannot be read, that is as expected. */
bool task_is_ending(pid_t pid, pid_t tid);

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

void snapshot_destroy(struct snapshot *snapshot);

/* The rights of this process itself. */
extern const struct rights rights_own;
