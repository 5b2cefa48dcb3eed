/* SPDX-License-Identifier: Apache-2.0 */
#include "features/stage/work_thread.h"

#include <errno.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/fd.h"

/* With the mutex locked. false: the owner has left. */
static bool next_task(struct work_thread *thread)
{
    while (!thread->has_task && !thread_share_is_left(&thread->share))
        pthread_cond_wait(&thread->share.changed, &thread->share.mutex);
    return thread->has_task;
}

static void work_run(struct thread_share *share)
{
    struct work_thread *thread = (struct work_thread *)share;
    thread_share_lock(share);
    while (next_task(thread)) {
        thread_share_unlock(share);
        thread->run(thread);
        thread_share_lock(share);
        thread->has_task = false;
        pthread_cond_signal(&share->changed);
        if (!thread_share_is_left(share))
            eventfd_write(thread->event, 1);
    }
    thread_share_unlock(share);
}

static void work_is_done(void *context, int what)
{
    struct work_thread *thread = context;
    eventfd_t count;
    (void)what;
    if (eventfd_read(thread->event, &count) < 0)
        return;
    thread->busy = false;
    thread->done(thread);
}

int work_thread_open(struct work_thread *thread, struct loop *loop, const char *name,
                     struct error *err)
{
    thread->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int code = thread->event < 0
                   ? errno
                   : thread_share_start(&thread->share, name, work_run, thread->free_all);
    if (code != 0) {
        fd_close(&thread->event);
        return error_errno(err, code, "cannot start a thread that reads and writes files");
    }
    thread->open = true;
    thread->watch = loop_fd_create(loop, thread->event, work_is_done, thread);
    loop_fd_watch(thread->watch, LOOP_READ);
    return 0;
}

void work_thread_do(struct work_thread *thread)
{
    thread->busy = true;
    thread_share_lock(&thread->share);
    thread->has_task = true;
    pthread_cond_signal(&thread->share.changed);
    thread_share_unlock(&thread->share);
}

bool work_thread_close(struct work_thread *thread, int64_t wait_ms)
{
    int64_t until_ms = clock_mono_ms() + wait_ms;
    if (!thread->open)
        return false;
    loop_fd_destroy(thread->watch);
    thread_share_lock(&thread->share);
    while (thread->has_task && thread_share_wait(&thread->share, until_ms)) {
    }
    bool busy = thread->has_task;
    thread_share_unlock(&thread->share);
    return busy;
}

void work_thread_leave(struct work_thread *thread)
{
    if (thread->open)
        thread_share_leave(&thread->share);
    else
        thread->free_all(&thread->share);
}
