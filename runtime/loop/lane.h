/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A way on which operations of a process set run, one after the other: a communicator and a fusion
 * buffer of its own. The operations of another lane of the set run at the same time, so one lane
 * copies or waits while the other one sends.
 *
 * A lane may have a thread. Then that thread runs operations while there are any.
 */
#pragma once

#include <pthread.h>

#include "loop/runner.h"
#include "loop/set_owner.h"

struct lane_item;

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

void lane_init(struct lane *lane); /* after its owner, runner, failed and context are set */
void lane_destroy(struct lane *lane);

/* -1: it has no thread. Use lane_run(). */
int lane_start(struct lane *lane, const char *name, struct error *err);
/* Ends the thread after the operations that remain. */
void lane_stop(struct lane *lane);

/* Runs an operation here, and completes its submissions. The lane must be idle. */
void lane_run(struct lane *lane, const struct action *action);
/* Its thread runs the operation. Takes what the action owns. */
void lane_add_take(struct lane *lane, struct action *action);
/* Whether no operation remains. */
bool lane_is_idle(struct lane *lane);
/* Waits until it is idle. The caller is the only one that adds operations. */
void lane_drain(struct lane *lane);
