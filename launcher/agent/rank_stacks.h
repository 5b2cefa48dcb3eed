/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Python stacks of workers and of the processes below them, for STATE_REPORT. A process that
 * does not run Python has one line there, with its wait channel and system call. No worker is
 * stopped for it.
 *
 * Threads read them (agent/stack_readers.h). The agent waits for these at most RANK_STACKS_MS, and
 * sends what is there by then. Of the processes of one worker, the first that runs Python counts as
 * the worker, since programs are often started by a shell or by numactl. All others are children.
 */
#pragma once

#include <sys/types.h>

#include "wire/control.pb-c.h"

#define RANK_STACKS_MS 1200 /* below the 2 s that the driver waits for the answer */

/* `pids` are those of message->seats; 0: the process does not run. Appends to message->stacks. */
void rank_stacks_fill(const pid_t *pids, Hvdrun__StateReport *message);
void rank_stacks_free(Hvdrun__StateReport *message); /* only the stacks */
