/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"

#define CHUNK (64u << 10)      /* the driver allows that a sender goes so far beyond its credit */
#define MOVED_LEAST (16 << 10) /* bytes that are cheaper to move than to copy */
#define FULL (48 << 10)        /* a worker that fills its pipe so far waits for us now and then */
#define WIDE ((int)(256u << 10))
#define WIDE_COUNT 32 /* pipes; a user may have 64 MiB in all, and then gets tiny ones */
#define ASKS 16
#define TERMINAL_HOLDS (128 << 10) /* at least what its buffers in the kernel can hold */
#define LINK_CONGESTED ((size_t)128 << 10)

struct worker_stream {
    struct stream_pool *pool;
    const struct post *post;
    TAILQ_ENTRY(worker_stream) all;
    struct loop_fd *watch;
    int fd;
    uint32_t seat;
    uint8_t number;
    uint64_t offset;
    int64_t open_ms; /* since when its last line is unfinished; 0: it is not, or has been shown */
    int asks;        /* so many more times it is asked how much waits, after much came at once */
    bool grown;      /* its pipe was to hold more than usual */
    bool wide;       /* it does, and counts in pool->wide */
    bool cut;        /* ends after `left` more bytes */
    bool missed;     /* it was cut while a process still held its other end */
    bool terminal;   /* since the cut: it is one, and cannot tell how much is left */
    int left;
    void (*ended)(void *context);
    void *context;
};

static void pool_remove(struct stream_pool *pool, struct worker_stream *stream)
{
    TAILQ_REMOVE(&pool->streams, stream, all);
    if (!TAILQ_EMPTY(&pool->streams))
        return;
    loop_timer_destroy(pool->timer);
    pool->timer = NULL;
}

/* It has had its turn. Where credit is short, those come first that have waited longest, or a few
 * that write much would leave nothing to the others. */
static void pool_rotate(struct stream_pool *pool, struct worker_stream *stream)
{
    TAILQ_REMOVE(&pool->streams, stream, all);
    TAILQ_INSERT_TAIL(&pool->streams, stream, all);
}

static bool pool_open(const struct stream_pool *pool)
{
    /* Once the driver is lost no credit counts, and workers must not block on output. */
    const struct link *link = post_link(pool->post);
    if (link == NULL)
        return true;
    return pool->used < pool->granted && link_queued(link) < LINK_CONGESTED;
}

static struct frame_data head_of(const struct worker_stream *stream)
{
    return (struct frame_data){.seat = stream->seat,
                               .stream = stream->number,
                               .offset = stream->offset,
                               .when_ns = (uint64_t)clock_mono_ns()};
}

/* A frame without bytes. */
static void stream_tell(const struct worker_stream *stream, enum frame_type type)
{
    struct link *link = post_link(stream->post);
    struct frame_data data = head_of(stream);
    if (link != NULL && link_data_reserve(link, 0) != NULL)
        link_data_commit(link, type, stream->post->epoch, &data, 0);
}

/* ---- unfinished lines ---- */

static int waiting_bytes(const struct worker_stream *stream)
{
    int there = 0;
    return ioctl(stream->fd, FIONREAD, &there) < 0 ? 0 : there;
}

static void pool_due(struct stream_pool *pool, int64_t due_ms, int64_t now_ms)
{
    if (loop_timer_is_set(pool->timer) && pool->due_ms <= due_ms)
        return;
    pool->due_ms = due_ms;
    loop_timer_set(pool->timer, due_ms > now_ms ? due_ms - now_ms : 0);
}

/* Bytes that wait in the pipe (for credit) begin a new wait when they are read. */
static void on_due(void *context)
{
    struct stream_pool *pool = context;
    int64_t now = clock_mono_ms();
    hold_woke(&pool->hold, pool->due_ms, now);
    if (!pool_open(pool))
        hold_blocked(&pool->hold, now);
    struct worker_stream *stream;
    TAILQ_FOREACH (stream, &pool->streams, all) {
        if (stream->open_ms == 0)
            continue;
        int64_t due = hold_due_ms(&pool->hold, stream->open_ms);
        if (due > now) {
            pool_due(pool, due, now);
            continue;
        }
        stream->open_ms = 0;
        if (waiting_bytes(stream) == 0)
            stream_tell(stream, FRAME_OUTPUT_SHOW);
    }
}

/* `bytes` NULL: they are unknown, so any of them may end a line. */
static void watch_line(struct worker_stream *stream, const uint8_t *bytes, size_t length)
{
    struct stream_pool *pool = stream->pool;
    int64_t now = clock_mono_ms();
    hold_passed(&pool->hold, length, now);
    if (bytes == NULL || memrchr(bytes, '\n', length) != NULL)
        stream->open_ms = 0;
    if (bytes != NULL && bytes[length - 1] == '\n')
        return;
    if (stream->open_ms == 0)
        stream->open_ms = now;
    if (pool->timer == NULL)
        pool->timer = loop_timer_create(pool->loop, on_due, pool);
    pool_due(pool, hold_due_ms(&pool->hold, stream->open_ms), now);
}

/* ---- bytes ---- */

/* A terminal counts only what its line discipline has, and not what is on the way there. This asks
 * the kernel to pass that on first. */
static bool has_bytes(const struct worker_stream *stream)
{
    struct pollfd now = {.fd = stream->fd, .events = POLLIN};
    return poll(&now, 1, 0) > 0 && (now.revents & POLLIN) != 0;
}

static void stream_close(struct worker_stream *stream)
{
    stream->pool->wide -= stream->wide;
    stream->wide = false;
    fd_close(&stream->fd);
}

static void stream_end(struct worker_stream *stream)
{
    stream_tell(stream, FRAME_OUTPUT);
    stream->open_ms = 0;
    struct pollfd now = {.fd = stream->fd, .events = POLLIN};
    stream->missed = stream->cut && poll(&now, 1, 0) >= 0 && (now.revents & POLLHUP) == 0;
    loop_fd_destroy(stream->watch);
    stream->watch = NULL;
    stream_close(stream);
    stream->ended(stream->context);
}

/* Fewer turns for worker, agent and driver, which then work in parallel more. */
static void widen(struct worker_stream *stream)
{
    struct stream_pool *pool = stream->pool;
    stream->grown = true;
    stream->wide = pool->wide < WIDE_COUNT && fcntl(stream->fd, F_GETPIPE_SZ) < WIDE &&
                   fcntl(stream->fd, F_SETPIPE_SZ, WIDE) >= 0;
    pool->wide += stream->wide;
}

/* At most a chunk beyond the credit. */
static size_t most(const struct stream_pool *pool)
{
    uint64_t credit = pool->granted > pool->used ? pool->granted - pool->used : 0;
    if (credit < CHUNK)
        return CHUNK;
    return credit < LINK_DATA_BEST ? (size_t)credit : LINK_DATA_BEST;
}

/* So much waits that moving it into the link is cheaper than copying it. */
static size_t much(struct worker_stream *stream)
{
    if (stream->asks == 0)
        return 0; /* most workers say little */
    int there = waiting_bytes(stream);
    stream->asks = there < MOVED_LEAST ? stream->asks - 1 : ASKS;
    if (there < MOVED_LEAST)
        return 0;
    if (there >= FULL && !stream->grown)
        widen(stream);
    size_t limit = most(stream->pool);
    return (size_t)there < limit ? (size_t)there : limit;
}

/* false: nothing was taken. */
static bool stream_move(struct worker_stream *stream, struct link *link, size_t length)
{
    struct frame_data data = head_of(stream);
    if (!link_data_splice(link, FRAME_OUTPUT, stream->post->epoch, &data, stream->fd, length))
        return false;
    stream->offset += length;
    stream->pool->used += length;
    watch_line(stream, NULL, length);
    return true;
}

/* One chunk into the link: its length, 0 at end of file, -1 when there is nothing now. `waiting`:
 * that much(). */
static ssize_t stream_read(struct worker_stream *stream, size_t waiting)
{
    struct stream_pool *pool = stream->pool;
    static const size_t room = CHUNK;
    char scrap[4096];
    struct link *link = post_link(stream->post);
    if (waiting > 0 && stream_move(stream, link, waiting))
        return (ssize_t)waiting;
    uint8_t *place = link != NULL ? link_data_reserve(link, room) : NULL;
    ssize_t got = place != NULL ? fd_read(stream->fd, place, room)
                                : fd_read(stream->fd, scrap, sizeof(scrap));
    if (got < 0 && errno == EIO)
        return 0; /* a terminal whose last user has gone */
    if (got > 0 && place != NULL) {
        struct frame_data data = head_of(stream);
        watch_line(stream, place, (size_t)got);
        link_data_commit(link, FRAME_OUTPUT, stream->post->epoch, &data, (size_t)got);
        stream->offset += (uint64_t)got;
        pool->used += (uint64_t)got;
        if (got >= MOVED_LEAST)
            stream->asks = ASKS;
    }
    return got < 0 && errno != EAGAIN ? 0 : got;
}

static void pause_stream(struct worker_stream *stream)
{
    stream->pool->paused = true;
    loop_fd_watch(stream->watch, 0);
}

static void stream_readable(void *context, int what)
{
    (void)what;
    struct worker_stream *stream = context;
    struct link *link = post_link(stream->post);
    size_t waiting = link != NULL ? much(stream) : 0;
    bool full = waiting > 0 && !link_ready(link);
    if (full || !pool_open(stream->pool)) {
        pause_stream(stream);
        return;
    }
    ssize_t got = stream_read(stream, waiting);
    if (got > 0)
        pool_rotate(stream->pool, stream);
    if (got > 0 && !pool_open(stream->pool))
        pause_stream(stream); /* else it would still be watched, and so first, when credit comes */
    if (got > 0 && stream->cut)
        stream->left -= (int)got;
    bool over =
        stream->cut && (got < 0 || stream->left <= 0 || (stream->terminal && !has_bytes(stream)));
    if (got == 0 || over)
        stream_end(stream);
}

struct worker_stream *stream_create(struct stream_pool *pool, const struct post *post, int fd,
                                    uint32_t seat, uint8_t number, void (*ended)(void *context),
                                    void *context)
{
    struct worker_stream *stream = MEM_NEW((struct worker_stream){.pool = pool,
                                                                  .post = post,
                                                                  .fd = fd,
                                                                  .seat = seat,
                                                                  .number = number,
                                                                  .ended = ended,
                                                                  .context = context});
    TAILQ_INSERT_HEAD(&pool->streams, stream, all);
    stream->watch = loop_fd_create(pool->loop, fd, stream_readable, stream);
    loop_fd_watch(stream->watch, LOOP_READ);
    return stream;
}

void stream_destroy(struct worker_stream *stream)
{
    if (stream == NULL)
        return;
    pool_remove(stream->pool, stream);
    loop_fd_destroy(stream->watch);
    stream_close(stream);
    free(stream);
}

void stream_cut(struct worker_stream *stream)
{
    if (stream->fd < 0 || stream->cut)
        return;
    stream->cut = true;
    stream->terminal = isatty(stream->fd) == 1;
    /* Counted now, since a process at the other end may go on writing forever. */
    stream->left = stream->terminal ? TERMINAL_HOLDS : waiting_bytes(stream);
    if (stream->left <= 0 || (stream->terminal && !has_bytes(stream)))
        stream_end(stream);
}

void stream_take(struct worker_stream *stream)
{
    ssize_t got = 1;
    if (stream->fd < 0 || stream->cut)
        return;
    for (int left = TERMINAL_HOLDS; left > 0 && got > 0; left -= (int)got) {
        if (!pool_open(stream->pool) || !has_bytes(stream))
            return;
        got = stream_read(stream, 0); /* its end is left to the loop, which sees it again */
    }
}

bool stream_missed(const struct worker_stream *stream)
{
    return stream->missed;
}

void stream_pool_resume(struct stream_pool *pool)
{
    if (!pool->paused || !pool_open(pool))
        return;
    pool->paused = false;
    hold_blocked(&pool->hold, clock_mono_ms());
    struct worker_stream *stream;
    TAILQ_FOREACH (stream, &pool->streams, all) {
        if (stream->watch != NULL)
            loop_fd_watch(stream->watch, LOOP_READ);
    }
}
