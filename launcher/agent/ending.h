/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends all that runs below this agent: the workers and the processes that they left behind (D6). A
 * stray is such a process outside of the groups of live workers. The agent's own helper programs
 * are none, and go on until the agent ends.
 *
 *   IDLE     begin: the signal to every worker's group and every stray, then the grace     ASKED
 *   ASKED    begin again (a stronger signal, another grace)                                ASKED
 *   ASKED    no worker lives, only strays: the grace is cut to a second                    ASKED
 *   ASKED    grace over: KILL to all, every 20 ms                                          KILLING
 *   ASKED, KILLING  nothing but helper programs remains below a subreaper                   GONE
 *   KILLING  something survives KILL for ten seconds (a process stuck in the kernel)       GONE
 *   GONE     reset: another epoch begins                                                   IDLE
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "io/helpers.h"
#include "io/loop.h"

struct ending_ops {
    void (*signal)(void *context, int signal); /* to the group of every live worker */
    bool (*is_worker_group)(void *context, pid_t group);
    int (*live)(void *context);     /* workers that have not exited */
    void (*collect)(void *context); /* reaps what has ended */
    /* Once, until a reset. `held`: "pid 123 (dd, in nfs_wait)", what SIGKILL does not end; NULL:
     * nothing. */
    void (*gone)(void *context, const char *held);
};

struct ending;

struct ending *ending_create(struct loop *loop, const struct helpers *helpers,
                             const struct ending_ops *ops, void *context);
void ending_destroy(struct ending *ending);
void ending_begin(struct ending *ending, int signal, int64_t grace_ms);
void ending_check(struct ending *ending);              /* some child has been reaped */
void ending_pause(struct ending *ending, bool paused); /* the job is suspended */
void ending_reset(struct ending *ending);
bool ending_is_idle(const struct ending *ending);

/*
 * Ending one worker alone (END_WORKER), while others of the node go on: the signal to its process
 * group, then KILL after the grace. Time in which the job is suspended does not count.
 *
 * A worker may end at once, while processes of its group still handle the signal. For example, a
 * shell script may end while its program saves its work. They have the rest of the grace. The end
 * of the epoch finds processes that have left the group.
 *
 *             started                exited, and its group    failed to start
 *   planned   running
 *   running                          exited
 *   any                                                       over
 */
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
