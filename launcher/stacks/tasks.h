/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel says of one thread of another process. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "stacks/rights.h"

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
