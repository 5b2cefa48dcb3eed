/* SPDX-License-Identifier: Apache-2.0 */
/* A process set, and its thread: the inside of set.h, which has the locks. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "core/core.h"
#include "loop/channel.h"
#include "loop/executor.h"
#include "loop/set_setup.h"

struct process_set {
    struct set_setup setup;
    int *ranks, rank; /* `rank`: of this process in the set; -1: not a member */
    atomic_int holders;
    struct executor executor;
    struct channel *channel;
    pthread_t thread;
    bool started;
    pthread_mutex_t lock;
    struct core *core;
    /* Both under `lock`. Until when the thread sleeps (INT64_MIN: it is awake). Until when it waits
     * for the others after set_leave() (INT64_MAX: it was not called). */
    int64_t asleep_until_ns, leave_until_ns;
    int left_rank; /* a global rank whose process has ended; -1: none */
    int64_t left_until_ns;
    /* Only the thread uses these. */
    bool ended, closed, over;
    int64_t end_ns; /* when it stops waiting for others; INT64_MAX: not yet */
};

enum hvd_status set_thread_start(struct process_set *set, struct error *err);

/* An operation has failed. `context`: the set. In any thread. */
void set_failed(void *context, enum hvd_status status, const char *text);

/* The core has heard from the root that the job has failed. The owner hears it before the program,
 * which may ask it as soon as one operation fails. */
void set_tell_loss(const struct process_set *set, enum hvd_status status, const char *text);
