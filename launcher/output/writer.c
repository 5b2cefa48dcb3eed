/* SPDX-License-Identifier: Apache-2.0 */
#include "output/writer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/thread.h"

#define POOL_MAX 40 /* written blocks that are kept for the next bytes */
#define OPEN_MAX 256

/* What the loop's thread and the writing thread share; everything from `lock` on is protected by
 * it, but for the last fields. The last of the two to leave frees it. */
struct writer {
    atomic_size_t written;     /* bytes, ever (or dropped) */
    atomic_uint_fast64_t done; /* blocks */
    atomic_bool give_up;
    struct output_target_set targets; /* the thread's own */
    struct output_target *all;        /* the loop's own while it is there */
    int wake_fd;
    pthread_mutex_t lock;
    pthread_cond_t work, ended_cond;
    struct block *first, **end, *pool;
    size_t pushed; /* bytes, ever */
    int pooled;
    bool stopping, ended, abandoned;
    bool writing;   /* a block is on its way */
    bool wake_idle; /* the loop holds a block back until everything before it is written */
    bool wake_wanted;
    size_t wake_below;
    uint64_t wake_ticket;
    struct output_target *failed;
    /* the loop's own */
    pthread_t thread;
    bool started, inline_only; /* inline: no thread could be had, so the loop itself writes */
};

struct writer *writer_create(void)
{
    struct writer *writer = mem_alloc(sizeof(*writer));
    writer->targets.open_max = OPEN_MAX;
    writer->targets.give_up = &writer->give_up;
    writer->wake_fd = -1;
    writer->end = &writer->first;
    pthread_mutex_init(&writer->lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&writer->work, &attributes);
    pthread_cond_init(&writer->ended_cond, &attributes);
    pthread_condattr_destroy(&attributes);
    return writer;
}

static void free_blocks(struct block *block)
{
    while (block != NULL) {
        struct block *next = block->next;
        free(block);
        block = next;
    }
}

static void destroy(struct writer *writer)
{
    while (writer->all != NULL) {
        struct output_target *target = writer->all;
        writer->all = target->next;
        target_abandon(&writer->targets, target);
        target_destroy(target);
    }
    free_blocks(writer->first);
    free_blocks(writer->pool);
    fd_close(&writer->wake_fd);
    pthread_mutex_destroy(&writer->lock);
    pthread_cond_destroy(&writer->work);
    pthread_cond_destroy(&writer->ended_cond);
    free(writer);
}

/* ---- on the writing thread ---- */

static void wake_loop(struct writer *writer)
{
    uint64_t one = 1;
    if (writer->wake_fd >= 0)
        (void)!fd_write(writer->wake_fd, &one, sizeof(one));
}

static void note_failure(struct writer *writer, struct output_target *target)
{
    pthread_mutex_lock(&writer->lock);
    struct output_target **place = &writer->failed;
    while (*place != NULL && *place != target)
        place = &(*place)->next_failed;
    *place = target;
    pthread_mutex_unlock(&writer->lock);
    wake_loop(writer);
}

static int write_segment(struct writer *writer, const struct block *block,
                         const struct segment *segment)
{
    if (segment->offset >= BLOCK_END)
        return target_end(&writer->targets, segment->target,
                          (enum target_end)(segment->offset - BLOCK_END));
    return target_write(&writer->targets, segment->target, block->bytes + segment->offset,
                        segment->length);
}

static void write_block(struct writer *writer, struct block *block)
{
    for (int i = 0; i < block->segments && !atomic_load(&writer->give_up); i++) {
        struct segment *segment = &block->segment[i];
        if (write_segment(writer, block, segment) != 0)
            note_failure(writer, segment->target);
    }
}

/* Called with the lock held. */
static void block_done(struct writer *writer, struct block *block)
{
    size_t left =
        writer->pushed - (atomic_fetch_add(&writer->written, block->length) + block->length);
    uint64_t done = atomic_fetch_add(&writer->done, 1) + 1;
    if (writer->pooled < POOL_MAX) {
        block->next = writer->pool;
        writer->pool = block;
        writer->pooled++;
    } else {
        free(block);
    }
    writer->writing = false;
    bool ticket = writer->wake_ticket != 0 && done >= writer->wake_ticket;
    bool wanted = writer->wake_wanted && (left <= writer->wake_below || ticket);
    bool idle = writer->wake_idle && writer->first == NULL;
    writer->wake_wanted &= !wanted;
    writer->wake_idle &= !idle;
    if (wanted || idle)
        wake_loop(writer);
}

/* Called with the lock held; writes until the queue is empty. */
static void write_queue(struct writer *writer)
{
    while (writer->first != NULL && !atomic_load(&writer->give_up)) {
        struct block *block = writer->first;
        writer->first = block->next;
        if (writer->first == NULL)
            writer->end = &writer->first;
        writer->writing = true;
        pthread_mutex_unlock(&writer->lock);
        write_block(writer, block);
        pthread_mutex_lock(&writer->lock);
        block_done(writer, block);
    }
}

static void *run(void *argument)
{
    struct writer *writer = argument;
    pthread_mutex_lock(&writer->lock);
    for (;;) {
        write_queue(writer);
        if (writer->stopping || atomic_load(&writer->give_up))
            break;
        pthread_cond_wait(&writer->work, &writer->lock);
    }
    writer->ended = true;
    bool mine = writer->abandoned;
    pthread_cond_signal(&writer->ended_cond);
    pthread_mutex_unlock(&writer->lock);
    if (mine)
        destroy(writer);
    return NULL;
}

/* ---- on the loop's thread ---- */

int writer_start(struct writer *writer)
{
    if (writer->started || writer->inline_only)
        return writer->wake_fd;
    writer->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    writer->started =
        writer->wake_fd >= 0 && thread_start(&writer->thread, "hvdrun-sink", run, writer) == 0;
    writer->inline_only = !writer->started;
    return writer->wake_fd;
}

struct output_target *writer_keep(struct writer *writer, struct output_target *target)
{
    target->next = writer->all;
    writer->all = target;
    return target;
}

struct block *writer_block(struct writer *writer)
{
    pthread_mutex_lock(&writer->lock);
    struct block *block = writer->pool;
    if (block != NULL) {
        writer->pool = block->next;
        writer->pooled--;
    }
    pthread_mutex_unlock(&writer->lock);
    if (block == NULL)
        block = mem_resize(NULL, sizeof(*block)); /* not zeroed: it is large */
    block->next = NULL;
    block->length = 0;
    block->segments = 0;
    return block;
}

bool writer_push(struct writer *writer, struct block *block, bool even_if_busy)
{
    pthread_mutex_lock(&writer->lock);
    bool busy = writer->first != NULL || writer->writing;
    bool taken = !busy || even_if_busy;
    if (taken) {
        *writer->end = block;
        writer->end = &block->next;
        writer->pushed += block->length;
    } else {
        writer->wake_idle = true;
    }
    if (writer->inline_only)
        write_queue(writer);
    pthread_mutex_unlock(&writer->lock);
    if (taken) /* with the lock free, or it would wake only to wait for that */
        pthread_cond_signal(&writer->work);
    return taken;
}

size_t writer_written(const struct writer *writer)
{
    return atomic_load(&writer->written);
}

uint64_t writer_done(const struct writer *writer)
{
    return atomic_load(&writer->done);
}

void writer_wake(struct writer *writer, size_t appended, size_t below, uint64_t ticket)
{
    pthread_mutex_lock(&writer->lock);
    writer->wake_below = below;
    writer->wake_ticket = ticket;
    bool now = appended - writer_written(writer) <= below ||
               (ticket != 0 && writer_done(writer) >= ticket);
    writer->wake_wanted = !now;
    if (now)
        wake_loop(writer);
    pthread_mutex_unlock(&writer->lock);
}

void writer_woken(struct writer *writer)
{
    uint64_t count;
    (void)!fd_read(writer->wake_fd, &count, sizeof(count));
}

struct output_target *writer_failure(struct writer *writer, int *errnum)
{
    pthread_mutex_lock(&writer->lock);
    struct output_target *target = writer->failed;
    if (target != NULL) {
        writer->failed = target->next_failed;
        target->next_failed = NULL;
        *errnum = target->errnum;
    }
    pthread_mutex_unlock(&writer->lock);
    return target;
}

static bool wait_for_thread(struct writer *writer, int64_t wait_ms)
{
    int64_t until = clock_mono_ns() + wait_ms * 1000000;
    struct timespec deadline = {.tv_sec = (time_t)(until / 1000000000),
                                .tv_nsec = (long)(until % 1000000000)};
    int result = 0;
    pthread_mutex_lock(&writer->lock);
    writer->stopping = true;
    pthread_cond_signal(&writer->work);
    while (!writer->ended && result == 0)
        result = pthread_cond_timedwait(&writer->ended_cond, &writer->lock, &deadline);
    bool ended = writer->ended;
    writer->abandoned = !ended;
    if (!ended)
        atomic_store(&writer->give_up, true);
    pthread_mutex_unlock(&writer->lock);
    return ended;
}

bool writer_end(struct writer *writer, int64_t wait_ms)
{
    pthread_t thread = writer->thread;
    bool started = writer->started;
    bool ended = !started || wait_for_thread(writer, wait_ms);
    if (started && ended)
        pthread_join(thread, NULL);
    else if (started)
        pthread_detach(thread);
    if (ended)
        destroy(writer);
    return ended;
}
