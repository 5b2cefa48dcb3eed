/* SPDX-License-Identifier: Apache-2.0 */
#include "io/threads.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "base/thread.h"

struct spawners {
    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t work;  /* there is some, or the end has come */
    pthread_cond_t done;  /* one more has run */
    STAILQ_HEAD(, spawner_task) tasks;
    bool over;
    int count;
    pthread_t threads[];
};

/* With the lock, which it gives back while it works. False: there is nothing to do. */
static bool work(struct spawners *spawners)
{
    struct spawner_task *task = STAILQ_FIRST(&spawners->tasks);
    if (task == NULL)
        return false;
    STAILQ_REMOVE_HEAD(&spawners->tasks, place);
    pthread_mutex_unlock(&spawners->lock);
    task->run(task);
    pthread_mutex_lock(&spawners->lock);
    task->done = true;
    pthread_cond_signal(&spawners->done);
    return true;
}

static void *run_tasks(void *context)
{
    struct spawners *spawners = context;
    pthread_mutex_lock(&spawners->lock);
    while (!spawners->over) {
        if (!work(spawners))
            pthread_cond_wait(&spawners->work, &spawners->lock);
    }
    pthread_mutex_unlock(&spawners->lock);
    return NULL;
}

struct spawners *spawners_create(int threads)
{
    struct spawners *spawners =
        mem_alloc(sizeof(*spawners) + (size_t)threads * sizeof(spawners->threads[0]));
    pthread_mutex_init(&spawners->lock, NULL);
    pthread_cond_init(&spawners->work, NULL);
    pthread_cond_init(&spawners->done, NULL);
    STAILQ_INIT(&spawners->tasks);
    while (spawners->count < threads &&
           thread_start(&spawners->threads[spawners->count], "spawner", run_tasks, spawners) == 0)
        spawners->count++;
    if (spawners->count > 0)
        return spawners;
    spawners_destroy(spawners);
    return NULL;
}

void spawners_destroy(struct spawners *spawners)
{
    if (spawners == NULL)
        return;
    pthread_mutex_lock(&spawners->lock);
    spawners->over = true;
    pthread_cond_broadcast(&spawners->work);
    pthread_mutex_unlock(&spawners->lock);
    for (int i = 0; i < spawners->count; i++)
        pthread_join(spawners->threads[i], NULL);
    pthread_cond_destroy(&spawners->done);
    pthread_cond_destroy(&spawners->work);
    pthread_mutex_destroy(&spawners->lock);
    free(spawners);
}

void spawners_add(struct spawners *spawners, struct spawner_task *task)
{
    task->done = false;
    pthread_mutex_lock(&spawners->lock);
    STAILQ_INSERT_TAIL(&spawners->tasks, task, place);
    pthread_cond_signal(&spawners->work);
    pthread_mutex_unlock(&spawners->lock);
}

void spawners_wait(struct spawners *spawners, const struct spawner_task *task)
{
    pthread_mutex_lock(&spawners->lock);
    while (!task->done)
        pthread_cond_wait(&spawners->done, &spawners->lock);
    pthread_mutex_unlock(&spawners->lock);
}

static void share_init(struct thread_share *share)
{
    pthread_condattr_t monotonic;
    pthread_mutex_init(&share->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&share->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

static void *run_share(void *context)
{
    struct thread_share *share = context;
    share->run(share);
    thread_share_lock(share);
    share->over = true;
    thread_share_unlock(share);
    thread_share_leave(share);
    return NULL;
}

int thread_share_start(struct thread_share *share, const char *name,
                       void (*run)(struct thread_share *share),
                       void (*free_all)(struct thread_share *all))
{
    pthread_t thread;
    *share = (struct thread_share){.run = run, .free_all = free_all, .holders = 2};
    share_init(share);
    int code = thread_start(&thread, name, run_share, share);
    if (code == 0) {
        pthread_detach(thread);
    } else {
        share->over = true;
        share->holders--;
    }
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

bool thread_share_is_left(const struct thread_share *share)
{
    return share->holders == 1;
}

bool thread_share_is_over(struct thread_share *share, int64_t until_ms)
{
    thread_share_lock(share);
    while (!share->over && thread_share_wait(share, until_ms)) {
    }
    bool over = share->over;
    thread_share_unlock(share);
    return over;
}

void thread_share_leave(struct thread_share *share)
{
    thread_share_lock(share);
    bool last = --share->holders == 0;
    pthread_cond_signal(&share->changed);
    thread_share_unlock(share);
    if (!last)
        return;
    pthread_cond_destroy(&share->changed);
    pthread_mutex_destroy(&share->mutex);
    share->free_all(share);
}
