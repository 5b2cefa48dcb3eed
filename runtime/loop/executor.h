/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the operations that a core has decided, and completes their submissions. For the thread of
 * a process set. */
#pragma once

#include "loop/gpu_set.h"
#include "loop/set_owner.h"

struct executor {
    const struct set_owner *owner; /* borrowed */
    struct runner runner;
    struct gpu_set *gpu_set; /* owned */
    /* An operation failed: the engine cannot be used any more. It comes before the submissions
     * are complete, so that nobody sees a usable library. */
    void (*failed)(void *context, enum hvd_status status, const char *text);
    void *context;
};

void executor_destroy(struct executor *executor);

/* False: the operation runs on a GPU, and its submissions complete later. */
bool executor_run(struct executor *executor, const struct action *action);

/* An operation that ended before it began. */
void executor_done(const struct executor *executor, const struct action *action);
