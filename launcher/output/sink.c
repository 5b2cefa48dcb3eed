/* SPDX-License-Identifier: Apache-2.0 */
#include "output/sink.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "output/target.h"

#define BLOCK_BYTES (108 * 1024)
#define BLOCK_SEGMENTS 1024
#define POOL_MAX 40 /* written blocks that are kept for the next bytes */
#define OPEN_MAX 256
#define CLOSE UINT32_MAX        /* as an offset: close the target */
#define REST (UINT32_MAX - 1)   /* as an offset: give its descriptor back */
#define REMOVE (UINT32_MAX - 2) /* as an offset: close the target and unlink it */
#define BYTES_END REMOVE        /* an offset of bytes is below */

struct segment {
    struct output_target *target;
    uint32_t offset, length;
};

struct block {
    struct block *next;
    size_t length;
    int segments;
    struct segment segment[BLOCK_SEGMENTS];
    char bytes[BLOCK_BYTES];
};

/* What the loop's thread and the sink's thread share; everything below `lock` is protected by it.
 * The last of the two to leave frees it. */
struct shared {
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
};

struct sink {
    struct loop *loop;
    struct sink_ops ops;
    void *context;
    struct shared *shared;
    struct loop_fd *watch;
    struct block *current;
    size_t appended; /* bytes, ever */
    uint64_t submitted;
    pthread_t thread;
    bool started, inline_only; /* inline: no thread could be had, so the loop itself writes */
};

static struct shared *shared_create(void)
{
    struct shared *shared = mem_alloc(sizeof(*shared));
    shared->targets.open_max = OPEN_MAX;
    shared->targets.give_up = &shared->give_up;
    shared->wake_fd = -1;
    shared->end = &shared->first;
    pthread_mutex_init(&shared->lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&shared->work, &attributes);
    pthread_cond_init(&shared->ended_cond, &attributes);
    pthread_condattr_destroy(&attributes);
    return shared;
}

static void free_blocks(struct block *block)
{
    while (block != NULL) {
        struct block *next = block->next;
        free(block);
        block = next;
    }
}

static void shared_destroy(struct shared *shared)
{
    while (shared->all != NULL) {
        struct output_target *target = shared->all;
        shared->all = target->next;
        target_close(&shared->targets, target);
        target_destroy(target);
    }
    free_blocks(shared->first);
    free_blocks(shared->pool);
    fd_close(&shared->wake_fd);
    pthread_mutex_destroy(&shared->lock);
    pthread_cond_destroy(&shared->work);
    pthread_cond_destroy(&shared->ended_cond);
    free(shared);
}

/* ---- on the writing thread ---- */

static void wake_loop(struct shared *shared)
{
    uint64_t one = 1;
    if (shared->wake_fd >= 0)
        (void)!fd_write(shared->wake_fd, &one, sizeof(one));
}

static void note_failure(struct shared *shared, struct output_target *target)
{
    pthread_mutex_lock(&shared->lock);
    struct output_target **place = &shared->failed;
    while (*place != NULL && *place != target)
        place = &(*place)->next_failed;
    *place = target;
    pthread_mutex_unlock(&shared->lock);
    wake_loop(shared);
}

static int write_segment(struct shared *shared, const struct block *block,
                         const struct segment *segment)
{
    if (segment->offset == CLOSE)
        return target_close(&shared->targets, segment->target);
    if (segment->offset == REMOVE)
        return target_remove(&shared->targets, segment->target);
    if (segment->offset == REST)
        return target_rest(&shared->targets, segment->target);
    return target_write(&shared->targets, segment->target, block->bytes + segment->offset,
                        segment->length);
}

static void write_block(struct shared *shared, struct block *block)
{
    for (int i = 0; i < block->segments && !atomic_load(&shared->give_up); i++) {
        struct segment *segment = &block->segment[i];
        if (write_segment(shared, block, segment) != 0)
            note_failure(shared, segment->target);
    }
}

/* Called with the lock held. */
static void block_done(struct shared *shared, struct block *block)
{
    size_t left =
        shared->pushed - (atomic_fetch_add(&shared->written, block->length) + block->length);
    uint64_t done = atomic_fetch_add(&shared->done, 1) + 1;
    if (shared->pooled < POOL_MAX) {
        block->next = shared->pool;
        shared->pool = block;
        shared->pooled++;
    } else {
        free(block);
    }
    shared->writing = false;
    bool ticket = shared->wake_ticket != 0 && done >= shared->wake_ticket;
    bool wanted = shared->wake_wanted && (left <= shared->wake_below || ticket);
    bool idle = shared->wake_idle && shared->first == NULL;
    shared->wake_wanted &= !wanted;
    shared->wake_idle &= !idle;
    if (wanted || idle)
        wake_loop(shared);
}

/* Called with the lock held; writes until the queue is empty. */
static void write_queue(struct shared *shared)
{
    while (shared->first != NULL && !atomic_load(&shared->give_up)) {
        struct block *block = shared->first;
        shared->first = block->next;
        if (shared->first == NULL)
            shared->end = &shared->first;
        shared->writing = true;
        pthread_mutex_unlock(&shared->lock);
        write_block(shared, block);
        pthread_mutex_lock(&shared->lock);
        block_done(shared, block);
    }
}

static void *run(void *argument)
{
    struct shared *shared = argument;
    pthread_mutex_lock(&shared->lock);
    for (;;) {
        write_queue(shared);
        if (shared->stopping || atomic_load(&shared->give_up))
            break;
        pthread_cond_wait(&shared->work, &shared->lock);
    }
    shared->ended = true;
    bool mine = shared->abandoned;
    pthread_cond_signal(&shared->ended_cond);
    pthread_mutex_unlock(&shared->lock);
    if (mine)
        shared_destroy(shared);
    return NULL;
}

/* ---- on the loop's thread ---- */

struct sink *sink_create(struct loop *loop, const struct sink_ops *ops, void *context)
{
    struct sink *sink = mem_alloc(sizeof(*sink));
    sink->loop = loop;
    sink->ops = *ops;
    sink->context = context;
    sink->shared = shared_create();
    return sink;
}

void sink_report_failures(struct sink *sink)
{
    for (;;) {
        pthread_mutex_lock(&sink->shared->lock);
        struct output_target *target = sink->shared->failed;
        int errnum = 0;
        if (target != NULL) {
            sink->shared->failed = target->next_failed;
            target->next_failed = NULL;
            errnum = target->errnum;
        }
        pthread_mutex_unlock(&sink->shared->lock);
        if (target == NULL)
            return;
        if (errnum != ECANCELED)
            sink->ops.failed(sink->context, target, errnum);
    }
}

static void on_wake(void *context, int what)
{
    (void)what;
    struct sink *sink = context;
    uint64_t count;
    (void)!fd_read(sink->shared->wake_fd, &count, sizeof(count));
    sink_submit(sink);
    sink_report_failures(sink);
    sink->ops.drained(sink->context);
}

/* A launcher that may not have one more thread still has to print: then it blocks. */
static void start(struct sink *sink)
{
    if (sink->started || sink->inline_only)
        return;
    struct shared *shared = sink->shared;
    shared->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (shared->wake_fd >= 0) {
        sink->watch = loop_fd_create(sink->loop, shared->wake_fd, on_wake, sink);
        loop_fd_watch(sink->watch, LOOP_READ);
    }
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    sink->started = shared->wake_fd >= 0 && pthread_create(&sink->thread, NULL, run, shared) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    sink->inline_only = !sink->started;
    if (sink->started)
        pthread_setname_np(sink->thread, "hvdrun-sink");
}

static struct output_target *keep(struct sink *sink, struct output_target *target)
{
    target->next = sink->shared->all;
    sink->shared->all = target;
    return target;
}

struct output_target *sink_descriptor(struct sink *sink, int fd, const char *name)
{
    return keep(sink, target_descriptor(fd, name));
}

struct output_target *sink_file(struct sink *sink, const char *path, bool append, bool folders)
{
    return keep(sink, target_file(path, append, folders));
}

struct output_target *sink_private_file(struct sink *sink, const char *path)
{
    struct output_target *target = target_file(path, false, true);
    target->private = true;
    return keep(sink, target);
}

const char *sink_target_name(const struct output_target *target)
{
    return target->path;
}

static struct block *take_block(struct shared *shared)
{
    pthread_mutex_lock(&shared->lock);
    struct block *block = shared->pool;
    if (block != NULL) {
        shared->pool = block->next;
        shared->pooled--;
    }
    pthread_mutex_unlock(&shared->lock);
    if (block == NULL)
        block = mem_resize(NULL, sizeof(*block)); /* not zeroed: it is large */
    block->next = NULL;
    block->length = 0;
    block->segments = 0;
    return block;
}

static void push(struct sink *sink, bool even_if_busy)
{
    struct block *block = sink->current;
    if (block == NULL)
        return;
    start(sink);
    struct shared *shared = sink->shared;
    pthread_mutex_lock(&shared->lock);
    bool busy = shared->first != NULL || shared->writing;
    if (busy && !even_if_busy) {
        shared->wake_idle = true;
    } else {
        sink->current = NULL;
        sink->submitted++;
        *shared->end = block;
        shared->end = &block->next;
        shared->pushed += block->length;
    }
    if (sink->inline_only)
        write_queue(shared);
    pthread_mutex_unlock(&shared->lock);
    if (sink->current == NULL) /* with the lock free, or it would wake only to wait for that */
        pthread_cond_signal(&shared->work);
}

/* While the thread is busy a block that is not full stays here and is filled further: the queue
 * consists of full blocks, whatever the size of the lines. */
void sink_submit(struct sink *sink)
{
    push(sink, false);
}

static void make_room(struct sink *sink)
{
    struct block *block = sink->current;
    if (block != NULL && (block->segments == BLOCK_SEGMENTS || block->length == BLOCK_BYTES))
        push(sink, true);
    if (sink->current == NULL)
        sink->current = take_block(sink->shared);
}

static struct segment *add_segment(struct sink *sink, struct output_target *target)
{
    make_room(sink);
    struct block *block = sink->current;
    struct segment *segment = &block->segment[block->segments++];
    *segment = (struct segment){target, (uint32_t)block->length, 0};
    return segment;
}

/* The segment that the next bytes for this target go into. */
static struct segment *segment_for(struct sink *sink, struct output_target *target)
{
    struct block *block = sink->current;
    if (block != NULL && block->segments > 0 && block->length < BLOCK_BYTES) {
        struct segment *last = &block->segment[block->segments - 1];
        if (last->target == target && last->offset < BYTES_END)
            return last;
    }
    return add_segment(sink, target);
}

char *sink_place(struct sink *sink, struct output_target *target, size_t *room)
{
    segment_for(sink, target);
    *room = BLOCK_BYTES - sink->current->length;
    return sink->current->bytes + sink->current->length;
}

void sink_placed(struct sink *sink, size_t length)
{
    struct block *block = sink->current;
    block->segment[block->segments - 1].length += (uint32_t)length;
    block->length += length;
    sink->appended += length;
}

void sink_append(struct sink *sink, struct output_target *target, const void *bytes, size_t length)
{
    const char *at = bytes;
    while (length > 0) {
        size_t room;
        char *place = sink_place(sink, target, &room);
        size_t part = length < room ? length : room;
        memcpy(place, at, part);
        sink_placed(sink, part);
        at += part;
        length -= part;
    }
}

void sink_open(struct sink *sink, struct output_target *target)
{
    segment_for(sink, target);
}

void sink_rest(struct sink *sink, struct output_target *target)
{
    add_segment(sink, target)->offset = REST;
}

void sink_close(struct sink *sink, struct output_target *target)
{
    add_segment(sink, target)->offset = CLOSE;
}

void sink_remove(struct sink *sink, struct output_target *target)
{
    add_segment(sink, target)->offset = REMOVE;
}

size_t sink_queued(const struct sink *sink)
{
    return sink->appended - atomic_load(&sink->shared->written);
}

uint64_t sink_ticket(const struct sink *sink)
{
    return sink->submitted + (sink->current != NULL);
}

bool sink_reached(const struct sink *sink, uint64_t ticket)
{
    return atomic_load(&sink->shared->done) >= ticket;
}

void sink_wake(struct sink *sink, size_t below, uint64_t ticket)
{
    struct shared *shared = sink->shared;
    pthread_mutex_lock(&shared->lock);
    shared->wake_below = below;
    shared->wake_ticket = ticket;
    bool now = sink_queued(sink) <= below || (ticket != 0 && atomic_load(&shared->done) >= ticket);
    shared->wake_wanted = !now;
    if (now)
        wake_loop(shared);
    pthread_mutex_unlock(&shared->lock);
}

static bool wait_for_thread(struct shared *shared, int64_t wait_ms)
{
    int64_t until = clock_mono_ns() + wait_ms * 1000000;
    struct timespec deadline = {.tv_sec = (time_t)(until / 1000000000),
                                .tv_nsec = (long)(until % 1000000000)};
    int result = 0;
    pthread_mutex_lock(&shared->lock);
    shared->stopping = true;
    pthread_cond_signal(&shared->work);
    while (!shared->ended && result == 0)
        result = pthread_cond_timedwait(&shared->ended_cond, &shared->lock, &deadline);
    bool ended = shared->ended;
    shared->abandoned = !ended;
    if (!ended)
        atomic_store(&shared->give_up, true);
    pthread_mutex_unlock(&shared->lock);
    return ended;
}

bool sink_destroy(struct sink *sink, int64_t wait_ms)
{
    if (sink == NULL)
        return true;
    push(sink, true);
    loop_fd_destroy(sink->watch);
    bool ended = !sink->started || wait_for_thread(sink->shared, wait_ms);
    if (sink->started && ended)
        pthread_join(sink->thread, NULL);
    else if (sink->started)
        pthread_detach(sink->thread);
    if (ended)
        shared_destroy(sink->shared);
    free(sink);
    return ended;
}
