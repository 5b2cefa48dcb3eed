/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread for work on files, which may wait for a disk or a server for any time. It does one task
 * at a time. Between tasks, all that they work on belongs to the owner of the thread.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "io/loop.h"
#include "io/threads.h"

struct work_thread { /* the first member of what the thread works on */
    struct thread_share share;
    void (*run)(struct work_thread *thread);      /* in the thread */
    void (*done)(struct work_thread *thread);     /* in the loop, afterwards */
    void (*free_all)(struct thread_share *share); /* of all of it, by the last one that leaves */
    bool open, busy;                              /* the owner's; `busy` until `done` */
    struct loop_fd *watch;                        /* the owner's */
    bool has_task;                                /* with the mutex */
    int event;                                    /* a task has run */
};

/* With run, done and free_all set. */
int work_thread_open(struct work_thread *thread, struct loop *loop, const char *name,
                     struct error *err);
void work_thread_do(struct work_thread *thread); /* the next task; not while it is busy */
/* Waits so long for a task to end. true: it is still busy. `done` never comes from now on. */
bool work_thread_close(struct work_thread *thread, int64_t wait_ms);
void work_thread_leave(struct work_thread *thread); /* also if it is not open, or busy */
