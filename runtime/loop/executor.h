/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the operations that a core has decided, and completes their submissions. For the thread of
 * a process set.
 *
 * With an engine that has two lanes, large operations run in the threads of the lanes, and the
 * set's thread goes on. All ranks choose the same lane for an operation, by the sizes of those
 * before.
 */
#pragma once

#include <pthread.h>

#include "loop/gpu_set.h"
#include "loop/runner.h"
#include "loop/set_owner.h"

struct lane_item;

/*
 * A way on which operations of a process set run, one after the other: a communicator and a fusion
 * buffer of its own. The operations of another lane of the set run at the same time, so one lane
 * copies or waits while the other one sends.
 *
 * A lane may have a thread. Then that thread runs operations while there are any.
 */
struct lane {
    const struct set_owner *owner; /* borrowed */
    struct runner runner;
    /* An operation failed: the engine cannot be used any more. It comes before the submissions
     * are complete, so that nobody sees a usable library. In the thread that ran it. */
    void (*failed)(void *context, enum hvd_status status, const char *text);
    void *context;
    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t changed;
    struct lane_item *first, **end; /* that of the operation that runs is the first one */
    bool ending;
};

struct executor {
    const struct set_owner *owner; /* borrowed */
    struct lane lanes[ENGINE_LANES_MAX];
    int lane_count;
    int64_t ahead;           /* bytes that the first lane was given more than the second one */
    struct gpu_set *gpu_set; /* owned */
};

struct executor_setup {
    const struct set_owner *owner;
    struct runner runner;       /* without its communicator */
    struct engine_comm **comms; /* one for each lane */
    int lane_count;
    void (*failed)(void *context, enum hvd_status status, const char *text); /* see struct lane */
    void *context;
};

void executor_init(struct executor *executor, const struct executor_setup *setup);
/* Starts the threads of the lanes, if there are several lanes. */
int executor_start(struct executor *executor, int32_t set, struct error *err);
void executor_stop(struct executor *executor); /* ends them */
void executor_destroy(struct executor *executor);

/* The communicator of a lane, for the caller to destroy; NULL: taken before, or never given. */
struct engine_comm *executor_take_comm(struct executor *executor, int lane);

/* True: it has run, and the set's thread did nothing else meanwhile. Otherwise its submissions
 * complete later, and it has taken what the action owns. */
bool executor_run(struct executor *executor, struct action *action);
/* Waits for the operations of the lanes. */
void executor_drain(struct executor *executor);

/* An operation that ended before it began. */
void executor_done(const struct executor *executor, const struct action *action);
