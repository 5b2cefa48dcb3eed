/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/stack_readers.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"

#define READERS_FIRST 2
#define READERS_MAX 8
#define STALL_MS 100 /* without any answer: a reader more */
#define LATE_MS 50   /* a reader notices the deadline before we give it up */

/* Shared by the caller and the readers; the last one frees it. */
struct work {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct stack_item *items;
    size_t count, next, done;
    int holders, readers;
    int64_t deadline_ns;
};

static struct work *create(const struct stack_item *items, size_t count, int64_t deadline_ns)
{
    struct work *work = mem_alloc(sizeof(*work));
    pthread_condattr_t clock;
    *work = (struct work){.items = mem_dup(items, count * sizeof(*items)),
                          .count = count,
                          .holders = 1,
                          .deadline_ns = deadline_ns};
    pthread_mutex_init(&work->mutex, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&work->changed, &clock);
    pthread_condattr_destroy(&clock);
    return work;
}

/* With the mutex locked, which it unlocks. */
static void leave(struct work *work)
{
    bool last = --work->holders == 0;
    pthread_mutex_unlock(&work->mutex);
    if (!last)
        return;
    for (size_t i = 0; i < work->count; i++)
        process_stacks_destroy(&work->items[i].stacks);
    pthread_cond_destroy(&work->changed);
    pthread_mutex_destroy(&work->mutex);
    free(work->items);
    free(work);
}

static void *read_items(void *context)
{
    struct work *work = context;
    struct runtime_files *files = runtime_files_create();
    pthread_mutex_lock(&work->mutex);
    while (work->next < work->count && clock_mono_ns() < work->deadline_ns) {
        struct stack_item *item = &work->items[work->next++];
        struct process_stacks stacks;
        pthread_mutex_unlock(&work->mutex);
        bool python = process_stacks_read(files, item->pid, work->deadline_ns, &stacks) == 1;
        pthread_mutex_lock(&work->mutex);
        item->stacks = stacks;
        item->python = python;
        item->done = true;
        work->done++;
        pthread_cond_signal(&work->changed);
    }
    runtime_files_destroy(files);
    leave(work);
    return NULL;
}

/* With the mutex locked. Signals are for the main thread. */
static void add_reader(struct work *work)
{
    sigset_t all, before;
    pthread_t thread;
    if (work->readers == READERS_MAX || work->next == work->count)
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    work->holders++;
    work->readers++;
    if (pthread_create(&thread, NULL, read_items, work) == 0)
        pthread_detach(thread);
    else
        work->holders--;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void wait_ms(struct work *work, int64_t milliseconds)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(milliseconds * 1000000);
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&work->changed, &work->mutex, &until);
}

void stack_readers_run(struct stack_item *items, size_t count, int64_t deadline_ns)
{
    if (count == 0)
        return;
    struct work *work = create(items, count, deadline_ns);
    int64_t answered_ns = clock_mono_ns();
    pthread_mutex_lock(&work->mutex);
    for (int i = 0; i < READERS_FIRST; i++)
        add_reader(work);
    while (work->done < count && clock_mono_ns() < deadline_ns + LATE_MS * 1000000) {
        size_t done = work->done;
        wait_ms(work, STALL_MS / 2);
        int64_t now = clock_mono_ns();
        if (work->done > done) {
            answered_ns = now;
        } else if (now - answered_ns > STALL_MS * 1000000) {
            answered_ns = now;
            add_reader(work);
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (!work->items[i].done)
            continue;
        items[i] = work->items[i];
        work->items[i].stacks = (struct process_stacks){.threads = NULL};
    }
    leave(work);
}
