/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel says of one thread of another process. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct task {
    pid_t inner;                 /* its number in its own PID namespace */
    bool nested;                 /* that namespace is not ours */
    char name[32];               /* printable */
    bool runs;                   /* on a processor, or waits for one */
    unsigned long long switches; /* how often it left its processor */
};

/* -1: there is no such thread. */
int task_read(pid_t pid, pid_t tid, struct task *out);

/* The thread of a process with this number in its own PID namespace; 0: none. */
pid_t task_find(pid_t pid, pid_t inner);

/* The number of the system call that it is in; -1: none, or not readable. `*running`: it runs. */
long task_call(pid_t pid, pid_t tid, bool *running);
