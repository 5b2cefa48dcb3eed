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

#include "core/action.h"
#include "loop/gpu_set.h"
#include "loop/handles.h"
#include "loop/runner.h"

struct lane_item;

/*
 * A way on which operations of a process set run, one after the other: a communicator and a fusion
 * buffer of its own. The operations of another lane of the set run at the same time, so one lane
 * copies or waits while the other one sends.
 *
 * A lane may have a thread. Then that thread runs operations while there are any.
 */
struct lane {
    const struct executor_setup *setup; /* that of the executor */
    struct runner runner;
    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t changed;
    struct lane_item *first, **end; /* that of the operation that runs is the first one */
    bool ending;
};

struct executor_setup {
    const struct set_owner *owner; /* borrowed */
    struct runner runner;          /* without its communicator */
    struct engine_comm **comms;    /* one for each lane; for executor_init() alone */
    int lane_count;
    /* An operation failed: the engine cannot be used any more. It comes before the submissions
     * are complete, so that nobody sees a usable library. In the thread that ran it. */
    void (*failed)(void *context, enum hvd_status status, const char *text);
    void *context;
};

struct executor {
    struct executor_setup setup;
    struct lane lanes[ENGINE_LANES_MAX];
    int64_t ahead;           /* bytes that the first lane was given more than the second one */
    struct gpu_set *gpu_set; /* owned */
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

/* What a process set needs of the job. The set's thread calls these functions without a lock. */
struct set_owner {
    void *context;
    struct handles *handles;
    struct gpus *gpus;
    /* The engine cannot be used any more: all sets fail. */
    void (*lost)(void *context, enum hvd_status status, const char *text);
    /* HVD_OK, or why all sets fail. `err` may be NULL. */
    enum hvd_status (*failure)(void *context, struct error *err);
    /* Adds or removes a process set. Not HVD_OK: the engine cannot be used any more. */
    enum hvd_status (*change)(void *context, const struct request *request, struct outcome *outcome,
                              struct error *err);
    void (*stalled)(void *context, int32_t set, const char *text, const struct stall *stall);
    void (*goes_on)(void *context, int32_t set); /* nothing is stalled any more */
    /* The set has another threshold and another cycle time. */
    void (*tuned)(void *context, const struct tuning *tuning);
    /* set_gone() should be called when this descriptor comes to its end. */
    void (*watch)(void *context, int fd, int32_t set, int rank);
};
