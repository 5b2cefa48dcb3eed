/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process is doing now, for the report of --timeout: state, wait channel, system call and
 * kernel stack, as far as the kernel lets us read them.
 */
#pragma once

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

/* One process: what it is called, and "calls read, waits in pipe_read", "running" or "stopped". */
struct proc_state {
    char *name, *doing; /* printable */
};

/* -1: there is no such process. The caller destroys it in any case. */
int proc_state_read(pid_t pid, struct proc_state *out);
void proc_state_destroy(struct proc_state *state);

/* "calls futex"; a call that is not in our list appears by its number. The caller's. */
char *proc_state_call(long number);

/* The word for a state letter of /proc/PID/stat: 'D' is "uninterruptible wait". Static. */
const char *proc_state_word(char letter);
