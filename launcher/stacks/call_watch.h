/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a thread is still in the same call, or makes it again and again: its stack looks the
 * same.
 *
 * The processor counts when the thread comes back from the call (perf_event_open, a breakpoint of
 * the kernel's counters). This stops nothing, and the counter ends at the first time. If the count
 * is 0, all stacks that were read since the counter began are of one call. Only a call that ends by
 * longjmp() or an exception is not noticed. Debuggers have one of four breakpoints less meanwhile.
 *
 * The kernel allows it to the user of the process up to kernel.perf_event_paranoid 2, and some
 * containers do not. The first time, a counter is tried on a function of our own.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct call_watches;
struct call_watches *call_watches_create(void);
void call_watches_destroy(struct call_watches *watches); /* accepts NULL */

/* A number for the call of a thread of process `pid` that comes back to `address`. It is the same
 * as last time if the thread has not come back since. Read the stack first: a new number says
 * nothing about the time before. 0 and errno: the kernel does not allow it, or the thread has
 * ended. */
uint64_t call_watches_number(struct call_watches *watches, pid_t pid, pid_t tid, uint64_t address);

/* Ends the counters that nobody has asked for in 5 minutes. Returns how many remain. */
size_t call_watches_expire(struct call_watches *watches);

/* "it cannot be seen whether calls of MPI return: Permission denied (kernel.perf_event_paranoid is
 * 3)". The caller's. */
char *call_watches_refusal(int error);
