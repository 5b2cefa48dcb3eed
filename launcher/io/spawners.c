/* SPDX-License-Identifier: Apache-2.0 */
#include "io/spawners.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/thread.h"

struct spawners {
    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t work;  /* there is some, or the end has come */
    pthread_cond_t done;  /* one more has run */
    struct spawner_task *first, **last;
    bool over;
    int count;
    pthread_t threads[];
};

/* With the lock, which it gives back while it works. False: there is nothing to do. */
static bool work(struct spawners *spawners)
{
    struct spawner_task *task = spawners->first;
    if (task == NULL)
        return false;
    spawners->first = task->next;
    if (spawners->first == NULL)
        spawners->last = &spawners->first;
    pthread_mutex_unlock(&spawners->lock);
    task->run(task);
    pthread_mutex_lock(&spawners->lock);
    task->done = true;
    pthread_cond_signal(&spawners->done);
    return true;
}

static void *run(void *context)
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
    spawners->last = &spawners->first;
    while (spawners->count < threads &&
           thread_start(&spawners->threads[spawners->count], "spawner", run, spawners) == 0)
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
    task->next = NULL;
    task->done = false;
    pthread_mutex_lock(&spawners->lock);
    *spawners->last = task;
    spawners->last = &task->next;
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
