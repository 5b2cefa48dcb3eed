/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process is doing now, for the report of --timeout: state, wait channel, system call and
 * kernel stack, as far as the kernel lets us read them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "node/descendants.h"

/* Appends one line for `pid` and for each of its descendants, and one with the kernel stack where
 * that is readable. Describes at most `max` processes, and says how many more there are. Each line
 * ends with a newline. Stops quietly at the limit of `out`. Returns the number of processes
 * described. */
size_t proc_state_report(const struct descendants_table *table, pid_t pid, size_t max,
                         struct buf *out);

/* What the kernel says of one thread. */
struct proc_facts {
    char letter;     /* of its state */
    long call;       /* the number of the system call that it is in; -1: none, or unknown */
    char wait[64];   /* the function of the kernel in which it waits; "": unknown */
    int stop_signal; /* 0: unknown */
    bool frozen;     /* its cgroup is */
    long threads;    /* of its process */
};

/* "calls read", "running", "stopped (SIGSTOP)"; with the wait channel behind the call if that is
 * wanted. The caller's. `*held`: it cannot go on until somebody else does something, for it is
 * stopped or frozen, or out of memory in its cgroup. */
char *proc_state_doing(const struct proc_facts *facts, bool with_wait, bool *held);

/* One process: what it is called, and what its first thread does: "calls read, waits in
 * pipe_read". */
struct proc_state {
    char *name, *doing; /* printable */
    bool held;
};

/* `call` is its system call as in struct proc_facts; NULL: it is read, too. -1: there is no such
 * process. The caller destroys it in any case. */
int proc_state_read(pid_t pid, const long *call, struct proc_state *out);
void proc_state_destroy(struct proc_state *state);

/* Why the first thread of a process cannot go on, as proc_state_doing() says it; NULL: it can, or
 * there is no such process. The caller's. */
char *proc_state_held(pid_t pid);

/* All of its threads have begun to end. The kernel closes the files of such a process before others
 * can wait for it. */
bool proc_state_ends(pid_t pid);

/* What one thread of a process does, without the wait channel unless that is all that is known. */
char *proc_state_thread(pid_t pid, pid_t tid, long call, bool *held);

/* "calls futex"; a call that the build did not know appears by its number. The caller's. */
char *proc_state_call(long number);

/* The word for a state letter of /proc/PID/stat: 'D' is "uninterruptible wait". Static. */
const char *proc_state_word(char letter);

/* Does a thread wait for a file of a file system that can hang: of a server, or of a program? Only
 * files of the kernel are read, so this does not wait for that file system.
 *
 * The kernel's name of the file system, "nfs4", of the file that the thread reads or writes now;
 * the caller frees it. NULL: it does not, the kernel does not say, or the file is on a disk of this
 * machine. `root` is put in front of /proc: "" except in tests. */
char *file_wait_system(const char *root, pid_t tid);
