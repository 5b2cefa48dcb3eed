/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/stack_readers.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"

#define READERS_FIRST 2
#define READERS_MAX 8 /* native frames are more work: as many as there are CPUs, from the start */
#define STALL_MS 100  /* without any answer: a reader more */
#define LATE_MS 50    /* a reader notices the deadline before we give it up */

/* Shared by the caller and the readers; the last one frees it. */
struct stack_work {
    pthread_mutex_t mutex;
    struct stack_item *items;
    size_t count, next, done;
    int holders, readers;
    struct held_readers *held;
    const struct unwind_module *module;
    int64_t deadline_ns;
};

struct stack_readers {
    struct stack_work *work;
    size_t done;         /* when it was looked at last */
    int64_t answered_ns; /* since then, it was so many */
};

static struct stack_work *create(const struct stack_item *items, size_t count,
                                 struct held_readers *held, const struct unwind_module *module,
                                 int64_t deadline_ns)
{
    struct stack_work *work = mem_alloc(sizeof(*work));
    *work = (struct stack_work){.items = mem_array(count + 1, sizeof(*items)),
                                .count = count,
                                .holders = 1,
                                .held = held_readers_share(held),
                                .module = module,
                                .deadline_ns = deadline_ns};
    for (size_t i = 0; i < count; i++)
        work->items[i] = items[i];
    pthread_mutex_init(&work->mutex, NULL);
    return work;
}

/* With the mutex locked, which it unlocks. */
static void leave(struct stack_work *work)
{
    bool last = --work->holders == 0;
    pthread_mutex_unlock(&work->mutex);
    if (!last)
        return;
    for (size_t i = 0; i < work->count; i++)
        process_stacks_destroy(&work->items[i].stacks);
    pthread_mutex_destroy(&work->mutex);
    held_readers_leave(work->held);
    free(work->items);
    free(work);
}

/* Without the mutex. false: a reader must not begin with this process. */
static bool read_item(struct stack_work *work, struct runtime_files *files, pid_t pid,
                      struct process_stacks *stacks, bool *python)
{
    int place = held_readers_begin(work->held, pid, work->deadline_ns + LATE_MS * 1000000);
    if (place < 0)
        return false;
    *python = process_stacks_read(files, pid, work->deadline_ns, stacks) == 1;
    if (work->module != NULL)
        process_native_read(work->module, pid, work->deadline_ns, stacks);
    held_readers_done(work->held, place);
    return true;
}

static void *read_items(void *context)
{
    struct stack_work *work = context;
    (void)fd_own_table(); /* what a held reader has open stays open when the agent has ended */
    struct runtime_files *files = runtime_files_create();
    pthread_mutex_lock(&work->mutex);
    while (work->next < work->count && clock_mono_ns() < work->deadline_ns) {
        struct stack_item *item = &work->items[work->next++];
        struct process_stacks stacks = {.threads = NULL};
        bool python = false;
        item->held = true; /* until it is done */
        pthread_mutex_unlock(&work->mutex);
        bool done = read_item(work, files, item->pid, &stacks, &python);
        pthread_mutex_lock(&work->mutex);
        item->stacks = stacks;
        item->python = python;
        item->done = done;
        item->held = !done;
        work->done++;
    }
    runtime_files_destroy(files);
    leave(work);
    return NULL;
}

/* With the mutex locked. Signals are for the main thread. */
static void add_reader(struct stack_work *work)
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

static int readers_at_first(const struct unwind_module *module)
{
    long cpus = module != NULL ? sysconf(_SC_NPROCESSORS_ONLN) : 0;
    return cpus <= READERS_FIRST ? READERS_FIRST : cpus < READERS_MAX ? (int)cpus : READERS_MAX;
}

struct stack_readers *stack_readers_create(const struct stack_item *items, size_t count,
                                           struct held_readers *held,
                                           const struct unwind_module *module, int64_t deadline_ns)
{
    struct stack_readers *readers = mem_alloc(sizeof(*readers));
    *readers = (struct stack_readers){.work = create(items, count, held, module, deadline_ns),
                                      .answered_ns = clock_mono_ns()};
    pthread_mutex_lock(&readers->work->mutex);
    for (int i = readers_at_first(module); i > 0; i--)
        add_reader(readers->work);
    pthread_mutex_unlock(&readers->work->mutex);
    return readers;
}

bool stack_readers_advance(struct stack_readers *readers)
{
    struct stack_work *work = readers->work;
    int64_t now = clock_mono_ns();
    pthread_mutex_lock(&work->mutex);
    bool over = work->done == work->count || now > work->deadline_ns + LATE_MS * 1000000;
    if (work->done > readers->done) {
        readers->done = work->done;
        readers->answered_ns = now;
    } else if (!over && now - readers->answered_ns > STALL_MS * 1000000) {
        readers->answered_ns = now;
        add_reader(work);
    }
    pthread_mutex_unlock(&work->mutex);
    return over;
}

void stack_readers_end(struct stack_readers *readers, struct stack_item *items)
{
    struct stack_work *work = readers->work;
    pthread_mutex_lock(&work->mutex);
    for (size_t i = 0; items != NULL && i < work->count; i++) {
        items[i].held = work->items[i].held;
        if (!work->items[i].done)
            continue;
        items[i] = work->items[i];
        work->items[i].stacks = (struct process_stacks){.threads = NULL};
    }
    leave(work);
    free(readers);
}
