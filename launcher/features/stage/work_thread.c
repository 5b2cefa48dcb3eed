/* SPDX-License-Identifier: Apache-2.0 */
#include "features/stage/work_thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/thread.h"

struct work_thread {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct work_task *task;  /* with the mutex; NULL: it has none */
    bool leaves;             /* with the mutex */
    int ends[2];             /* a byte for each task that has run */
    struct work_task *given; /* the owner's: until `done` */
    struct loop_fd *watch;   /* the owner's */
};

static void work_free(struct work_thread *thread)
{
    fd_close(&thread->ends[0]);
    fd_close(&thread->ends[1]);
    pthread_cond_destroy(&thread->changed);
    pthread_mutex_destroy(&thread->mutex);
    free(thread);
}

/* NULL: the owner has left. */
static struct work_task *next_task(struct work_thread *thread)
{
    pthread_mutex_lock(&thread->mutex);
    while (thread->task == NULL && !thread->leaves)
        pthread_cond_wait(&thread->changed, &thread->mutex);
    struct work_task *task = thread->task;
    pthread_mutex_unlock(&thread->mutex);
    return task;
}

/* false: the owner has left. */
static bool hand_back(struct work_thread *thread, struct work_task *task)
{
    pthread_mutex_lock(&thread->mutex);
    bool leaves = thread->leaves;
    thread->task = NULL;
    pthread_cond_signal(&thread->changed);
    pthread_mutex_unlock(&thread->mutex);
    if (leaves)
        task->discard(task);
    else
        (void)!fd_write(thread->ends[1], "", 1);
    return !leaves;
}

static void *work_run(void *context)
{
    struct work_thread *thread = context;
    struct work_task *task = next_task(thread);
    while (task != NULL) {
        task->run(task);
        task = hand_back(thread, task) ? next_task(thread) : NULL;
    }
    work_free(thread);
    return NULL;
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
    pthread_t id;
    *thread = (struct work_thread){.ends = {-1, -1}};
    pthread_mutex_init(&thread->mutex, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&thread->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    int code = fd_pipe(thread->ends) < 0 || fd_nonblock(thread->ends[0]) < 0 ? errno : 0;
    if (code == 0)
        code = thread_start(&id, name, work_run, thread);
    if (code != 0) {
        error_errno(err, code, "cannot start a thread that reads and writes files");
        work_free(thread);
        return NULL;
    }
    pthread_detach(id);
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
    pthread_mutex_lock(&thread->mutex);
    thread->task = task;
    pthread_cond_signal(&thread->changed);
    pthread_mutex_unlock(&thread->mutex);
}

bool work_thread_destroy(struct work_thread *thread, int64_t wait_ms)
{
    struct timespec until;
    int waited = 0;
    loop_fd_destroy(thread->watch);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += wait_ms / 1000;
    pthread_mutex_lock(&thread->mutex);
    while (thread->task != NULL && waited == 0 && wait_ms > 0)
        waited = pthread_cond_timedwait(&thread->changed, &thread->mutex, &until);
    bool busy = thread->task != NULL;
    thread->leaves = true;
    pthread_cond_signal(&thread->changed);
    pthread_mutex_unlock(&thread->mutex);
    return busy;
}
