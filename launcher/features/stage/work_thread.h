/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread for work on files, which may wait for a disk or a server for any time. It does one task
 * at a time. Between tasks, all that they work on belongs to the owner of the thread.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "io/loop.h"

struct work_task {
    void (*run)(struct work_task *task);     /* in the thread */
    void (*done)(struct work_task *task);    /* in the loop, afterwards */
    void (*discard)(struct work_task *task); /* the owner has left: frees the task, in the thread */
};

struct work_thread;

struct work_thread *work_thread_create(struct loop *loop, const char *name, struct error *err);
bool work_thread_is_busy(const struct work_thread *thread);
void work_thread_do(struct work_thread *thread, struct work_task *task); /* not while it is busy */
/* Waits so long for a task to end. true: it is still busy. Then its task is discarded as soon as it
 * has run. `done` never comes. */
bool work_thread_destroy(struct work_thread *thread, int64_t wait_ms);
