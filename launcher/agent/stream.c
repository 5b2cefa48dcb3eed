/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/stream.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"

#define CHUNK (64u << 10)
#define LINK_CONGESTED ((size_t)1 << 20)

struct stream {
    struct stream_pool *pool;
    const struct post *post;
    struct stream *next, *previous;
    struct loop_fd *watch;
    int fd;
    uint32_t seat;
    uint8_t number;
    uint64_t offset;
    bool cut;    /* ends after `left` more bytes */
    bool missed; /* it was cut while somebody still held its other end */
    int left;
    void (*ended)(void *context);
    void *context;
};

static void pool_add(struct stream_pool *pool, struct stream *stream)
{
    stream->next = pool->first;
    if (pool->first != NULL)
        pool->first->previous = stream;
    pool->first = stream;
}

static void pool_remove(struct stream_pool *pool, struct stream *stream)
{
    if (stream->previous != NULL)
        stream->previous->next = stream->next;
    else
        pool->first = stream->next;
    if (stream->next != NULL)
        stream->next->previous = stream->previous;
}

static bool pool_open(const struct stream_pool *pool)
{
    /* Once the driver is gone nobody counts any more, and workers must not block on output. */
    const struct link *link = post_link(pool->post);
    if (link == NULL)
        return true;
    return pool->used < pool->granted && link_queued(link) < LINK_CONGESTED;
}

static void stream_end(struct stream *stream)
{
    struct link *link = post_link(stream->post);
    if (link != NULL) {
        struct frame_data data = {.rank = stream->seat,
                                  .stream = stream->number,
                                  .offset = stream->offset,
                                  .when_ns = (uint64_t)clock_mono_ns()};
        if (link_data_reserve(link, 0) != NULL)
            link_data_commit(link, FRAME_OUTPUT, stream->post->epoch, &data, 0);
    }
    struct pollfd now = {.fd = stream->fd, .events = POLLIN};
    stream->missed = stream->cut && poll(&now, 1, 0) >= 0 && (now.revents & POLLHUP) == 0;
    loop_fd_destroy(stream->watch);
    stream->watch = NULL;
    fd_close(&stream->fd);
    stream->ended(stream->context);
}

/* One chunk into the link's queue: its length, 0 at end of file, -1 when there is nothing now. */
static ssize_t stream_read(struct stream *stream)
{
    struct stream_pool *pool = stream->pool;
    static const size_t room = CHUNK;
    char scrap[4096];
    struct link *link = post_link(stream->post);
    uint8_t *place = link != NULL ? link_data_reserve(link, room) : NULL;
    ssize_t got = place != NULL ? fd_read(stream->fd, place, room)
                                : fd_read(stream->fd, scrap, sizeof(scrap));
    if (got < 0 && errno == EIO)
        return 0; /* a terminal whose last user has gone */
    if (got > 0 && place != NULL) {
        struct frame_data data = {.rank = stream->seat,
                                  .stream = stream->number,
                                  .offset = stream->offset,
                                  .when_ns = (uint64_t)clock_mono_ns()};
        link_data_commit(link, FRAME_OUTPUT, stream->post->epoch, &data, (size_t)got);
        stream->offset += (uint64_t)got;
        pool->used += (uint64_t)got;
    }
    return got < 0 && errno != EAGAIN ? 0 : got;
}

static void stream_readable(void *context, int what)
{
    (void)what;
    struct stream *stream = context;
    if (!pool_open(stream->pool)) {
        stream->pool->paused = true;
        loop_fd_watch(stream->watch, 0);
        return;
    }
    ssize_t got = stream_read(stream);
    if (got > 0 && stream->cut)
        stream->left -= (int)got;
    if (got == 0 || (stream->cut && (got < 0 || stream->left <= 0)))
        stream_end(stream);
}

struct stream *stream_create(struct stream_pool *pool, const struct post *post, int fd,
                             uint32_t seat, uint8_t number, void (*ended)(void *context),
                             void *context)
{
    struct stream *stream = mem_alloc(sizeof(*stream));
    *stream = (struct stream){.pool = pool,
                              .post = post,
                              .fd = fd,
                              .seat = seat,
                              .number = number,
                              .ended = ended,
                              .context = context};
    pool_add(pool, stream);
    stream->watch = loop_fd_create(pool->loop, fd, stream_readable, stream);
    loop_fd_watch(stream->watch, LOOP_READ);
    return stream;
}

void stream_destroy(struct stream *stream)
{
    if (stream == NULL)
        return;
    pool_remove(stream->pool, stream);
    loop_fd_destroy(stream->watch);
    fd_close(&stream->fd);
    free(stream);
}

void stream_cut(struct stream *stream)
{
    if (stream->fd < 0 || stream->cut)
        return;
    stream->cut = true;
    /* Counted now, since whoever holds the other end may go on writing for ever. */
    if (ioctl(stream->fd, FIONREAD, &stream->left) < 0 || stream->left <= 0)
        stream_end(stream);
}

bool stream_missed(const struct stream *stream)
{
    return stream->missed;
}

void stream_pool_resume(struct stream_pool *pool)
{
    if (!pool->paused || !pool_open(pool))
        return;
    pool->paused = false;
    for (struct stream *stream = pool->first; stream != NULL; stream = stream->next) {
        if (stream->watch != NULL)
            loop_fd_watch(stream->watch, LOOP_READ);
    }
}
