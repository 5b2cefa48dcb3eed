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
