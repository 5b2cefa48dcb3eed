/* SPDX-License-Identifier: Apache-2.0 */
#include "io/thread_share.h"

#include <time.h>

#include "base/thread.h"

void thread_share_init(struct thread_share *share)
{
    pthread_condattr_t monotonic;
    *share = (struct thread_share){.holders = 1};
    pthread_mutex_init(&share->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&share->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

int thread_share_start(struct thread_share *share, const char *name, void *(*run)(void *context),
                       void *context)
{
    pthread_t thread;
    thread_share_lock(share); /* the thread cannot leave before it counts */
    int code = thread_start(&thread, name, run, context);
    if (code == 0) {
        share->holders++;
        pthread_detach(thread);
    }
    thread_share_unlock(share);
    return code;
}

void thread_share_lock(struct thread_share *share)
{
    pthread_mutex_lock(&share->mutex);
}

void thread_share_unlock(struct thread_share *share)
{
    pthread_mutex_unlock(&share->mutex);
}

bool thread_share_wait(struct thread_share *share, int64_t until_ms)
{
    struct timespec until = {.tv_sec = (time_t)(until_ms / 1000),
                             .tv_nsec = (long)(until_ms % 1000) * 1000000};
    return pthread_cond_timedwait(&share->changed, &share->mutex, &until) == 0;
}

bool thread_share_leave(struct thread_share *share)
{
    bool last = --share->holders == 0;
    thread_share_unlock(share);
    if (!last)
        return false;
    pthread_cond_destroy(&share->changed);
    pthread_mutex_destroy(&share->mutex);
    return true;
}
