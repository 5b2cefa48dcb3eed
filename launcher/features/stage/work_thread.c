/* SPDX-License-Identifier: Apache-2.0 */
#include "features/stage/work_thread.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "io/threads.h"

struct work_thread {
    struct thread_share share;
    struct work_task *task;  /* with the mutex; NULL: it has none */
    bool leaves;             /* with the mutex */
    int ends[2];             /* a byte for each task that has run */
    struct work_task *given; /* the owner's: until `done` */
    struct loop_fd *watch;   /* the owner's */
};

static void free_all(struct thread_share *all)
{
    struct work_thread *thread = (struct work_thread *)all;
    fd_close(&thread->ends[0]);
    fd_close(&thread->ends[1]);
    free(thread);
}

/* NULL: the owner has left. */
static struct work_task *next_task(struct work_thread *thread)
{
    thread_share_lock(&thread->share);
    while (thread->task == NULL && !thread->leaves)
        pthread_cond_wait(&thread->share.changed, &thread->share.mutex);
    struct work_task *task = thread->task;
    thread_share_unlock(&thread->share);
    return task;
}

/* false: the owner has left. */
static bool hand_back(struct work_thread *thread, struct work_task *task)
{
    thread_share_lock(&thread->share);
    bool leaves = thread->leaves;
    thread->task = NULL;
    pthread_cond_signal(&thread->share.changed);
    thread_share_unlock(&thread->share);
    if (leaves)
        task->discard(task);
    else
        (void)!fd_write(thread->ends[1], "", 1);
    return !leaves;
}

static void work_run(struct thread_share *share)
{
    struct work_thread *thread = (struct work_thread *)share;
    struct work_task *task = next_task(thread);
    while (task != NULL) {
        task->run(task);
        task = hand_back(thread, task) ? next_task(thread) : NULL;
    }
}

static void work_is_done(void *context, int what)
{
    struct work_thread *thread = context;
    struct work_task *task = thread->given;
    char byte;
    (void)what;
    if (fd_read(thread->ends[0], &byte, 1) != 1)
        return;
    thread->given = NULL;
    task->done(task);
}

struct work_thread *work_thread_create(struct loop *loop, const char *name, struct error *err)
{
    struct work_thread *thread = mem_alloc(sizeof(*thread));
    *thread = (struct work_thread){.ends = {-1, -1}};
    int code = fd_pipe(thread->ends) < 0 || fd_nonblock(thread->ends[0]) < 0
                   ? errno
                   : thread_share_start(&thread->share, name, work_run, free_all);
    if (code != 0) {
        error_errno(err, code, "cannot start a thread that reads and writes files");
        free_all(&thread->share);
        return NULL;
    }
    thread->watch = loop_fd_create(loop, thread->ends[0], work_is_done, thread);
    loop_fd_watch(thread->watch, LOOP_READ);
    return thread;
}

bool work_thread_is_busy(const struct work_thread *thread)
{
    return thread->given != NULL;
}

void work_thread_do(struct work_thread *thread, struct work_task *task)
{
    thread->given = task;
    thread_share_lock(&thread->share);
    thread->task = task;
    pthread_cond_signal(&thread->share.changed);
    thread_share_unlock(&thread->share);
}

bool work_thread_destroy(struct work_thread *thread, int64_t wait_ms)
{
    int64_t until_ms = clock_mono_ms() + wait_ms;
    loop_fd_destroy(thread->watch);
    thread_share_lock(&thread->share);
    while (thread->task != NULL && wait_ms > 0 && thread_share_wait(&thread->share, until_ms)) {
    }
    bool busy = thread->task != NULL;
    thread->leaves = true;
    thread_share_unlock(&thread->share);
    thread_share_leave(&thread->share);
    return busy;
}
