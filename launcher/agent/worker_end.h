/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ending one worker alone (END_WORKER), while others of the node go on: the signal to its process
 * group, then KILL after the grace. Time in which the job is suspended does not count.
 *
 * A worker may end at once, while processes of its group still handle the signal. For example, a
 * shell script may end while its program saves its work. They have the rest of the grace. The end
 * of the epoch finds processes that have left the group (ending.h).
 *
 *             started                exited, and its group    failed to start
 *   planned   running
 *   running                          exited
 *   any                                                       over
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "io/loop.h"

struct worker_end;

struct worker_end *worker_end_create(struct loop *loop, bool paused); /* of a planned worker */
void worker_end_destroy(struct worker_end *end); /* leaves alone what still runs */

/* May be called again: the later signal and grace (ms; 0: KILL at once) hold. A worker that has not
 * started gets the signal from worker_end_started(). */
void worker_end_begin(struct worker_end *end, int signal, int64_t grace_ms);
/* These, and over, accept NULL: no END_WORKER has come. */
void worker_end_started(struct worker_end *end, pid_t pid);
void worker_end_pause(struct worker_end *end, bool paused);
void worker_end_exited(struct worker_end *end);        /* it has been waited for */
void worker_end_failed(struct worker_end *end);        /* it never started, and will not */
bool worker_end_is_over(const struct worker_end *end); /* no process remains to be killed */

/* To the process group of a worker that runs; it has the number of its process. */
void worker_group_signal(pid_t group, int signal);
