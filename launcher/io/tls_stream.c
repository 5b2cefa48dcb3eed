/* SPDX-License-Identifier: Apache-2.0 */
#include "io/tls_stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"

enum {
    PASSES_PER_TURN = 16, /* then others have their turn */
    READ_SIZE = 16 << 10, /* a record */
};

struct tls_stream {
    struct tls_end peer;
    struct loop_fd *peer_watch, *local_watch;
    struct loop_timer *again; /* more to do at once */
    int local_fd;
    struct buf to_peer, from_peer;
    bool local_ended; /* its reader and writer are gone */
    bool peer_ended;
    bool told;
    char why[256]; /* "": it did not break */
    tls_stream_ended *ended;
    void *context;
};

static void end_peer(struct tls_stream *stream, const char *problem)
{
    stream->peer_ended = true;
    buf_clear(&stream->to_peer);
    if (problem != NULL)
        snprintf(stream->why, sizeof(stream->why), "%s", problem);
}

/* Each of these: true when something has moved. */

static bool read_peer(struct tls_stream *stream)
{
    const struct tls_end *peer = &stream->peer;
    if (stream->peer_ended || stream->from_peer.length + READ_SIZE > TLS_STREAM_BUFFER)
        return false;
    ssize_t got =
        peer->module->read(peer->session, buf_reserve(&stream->from_peer, READ_SIZE), READ_SIZE);
    if (got > 0 && !stream->local_ended)
        buf_commit(&stream->from_peer, (size_t)got);
    else if (got == 0)
        end_peer(stream, NULL);
    else if (got < 0 && errno != EAGAIN)
        end_peer(stream, peer->module->problem(peer->session));
    return got >= 0;
}

static bool write_peer(struct tls_stream *stream)
{
    const struct tls_end *peer = &stream->peer;
    if (stream->peer_ended || stream->to_peer.length == 0)
        return false;
    ssize_t put =
        peer->module->write(peer->session, buf_text(&stream->to_peer), stream->to_peer.length);
    if (put > 0)
        buf_consume(&stream->to_peer, (size_t)put);
    else if (put < 0 && errno != EAGAIN)
        end_peer(stream, peer->module->problem(peer->session));
    return put > 0;
}

static bool read_local(struct tls_stream *stream)
{
    if (stream->local_ended || stream->peer_ended ||
        stream->to_peer.length + READ_SIZE > TLS_STREAM_BUFFER)
        return false;
    ssize_t got = fd_read(stream->local_fd, buf_reserve(&stream->to_peer, READ_SIZE), READ_SIZE);
    if (got > 0) {
        buf_commit(&stream->to_peer, (size_t)got);
        return true;
    }
    stream->local_ended = got == 0 || errno != EAGAIN;
    return stream->local_ended;
}

static bool write_local(struct tls_stream *stream)
{
    if (stream->from_peer.length == 0 || stream->local_ended)
        return false;
    ssize_t put =
        fd_write(stream->local_fd, buf_text(&stream->from_peer), stream->from_peer.length);
    if (put > 0)
        buf_consume(&stream->from_peer, (size_t)put);
    else if (put < 0 && errno != EAGAIN)
        stream->local_ended = true;
    return put > 0;
}

static void arm(struct tls_stream *stream, bool more)
{
    const struct tls_end *peer = &stream->peer;
    int local = 0, remote = 0;
    if (stream->to_peer.length + READ_SIZE <= TLS_STREAM_BUFFER && !stream->local_ended)
        local |= LOOP_READ;
    if (stream->from_peer.length > 0)
        local |= LOOP_WRITE;
    if (stream->from_peer.length + READ_SIZE <= TLS_STREAM_BUFFER)
        remote |= peer->module->wants(peer->session, TLS_READING);
    if (stream->to_peer.length > 0)
        remote |= peer->module->wants(peer->session, TLS_WRITING);
    loop_fd_watch(stream->local_watch, stream->peer_ended ? local & LOOP_WRITE : local);
    loop_fd_watch(stream->peer_watch, stream->peer_ended ? 0 : remote);
    if (more)
        loop_timer_set(stream->again, 0);
}

/* Shut down, not only closed: the agent's keeper holds the same connection. */
static void hang_up(struct tls_stream *stream)
{
    if (stream->peer.fd < 0)
        return;
    stream->peer.module->end(stream->peer.session);
    shutdown(stream->peer.fd, SHUT_RDWR);
    loop_fd_destroy(stream->peer_watch);
    loop_fd_destroy(stream->local_watch);
    stream->peer_watch = stream->local_watch = NULL;
    fd_close(&stream->peer.fd);
}

static bool is_over(const struct tls_stream *stream)
{
    if (stream->peer_ended)
        return stream->local_ended || stream->from_peer.length == 0;
    return stream->local_ended && stream->to_peer.length == 0;
}

static void run(void *context)
{
    struct tls_stream *stream = context;
    bool moved = true;
    if (stream->told)
        return;
    for (int pass = 0; moved && pass < PASSES_PER_TURN; pass++) {
        moved = read_peer(stream);
        moved |= write_local(stream);
        moved |= read_local(stream);
        moved |= write_peer(stream);
    }
    if (!is_over(stream)) {
        arm(stream, moved);
        return;
    }
    stream->told = true;
    loop_timer_clear(stream->again);
    hang_up(stream);
    int local_fd = stream->local_fd;
    stream->local_fd = -1;
    stream->ended(stream->context, stream->why[0] == '\0' ? NULL : stream->why);
    fd_close(&local_fd); /* last: the reader is to know why */
}

static void ready(void *context, int what)
{
    (void)what;
    run(context);
}

struct tls_stream *tls_stream_create(struct loop *loop, const struct tls_end *end, int *local_fd,
                                     tls_stream_ended *ended, void *context, struct error *err)
{
    int ends[2];
    if (fd_socketpair(ends) < 0) {
        error_errno(err, errno, "cannot create a stream for a connection");
        return NULL;
    }
    struct tls_stream *stream = MEM_NEW(
        (struct tls_stream){.peer = *end, .local_fd = ends[0], .ended = ended, .context = context});
    *local_fd = ends[1];
    fd_nonblock(ends[0]);
    fd_nonblock(end->fd);
    buf_init(&stream->to_peer, 2 * TLS_STREAM_BUFFER);
    buf_init(&stream->from_peer, 2 * TLS_STREAM_BUFFER);
    stream->peer_watch = loop_fd_create(loop, end->fd, ready, stream);
    stream->local_watch = loop_fd_create(loop, ends[0], ready, stream);
    stream->again = loop_timer_create(loop, run, stream);
    loop_timer_set(stream->again, 0);
    return stream;
}

void tls_stream_destroy(struct tls_stream *stream)
{
    if (stream == NULL)
        return;
    hang_up(stream);
    loop_timer_destroy(stream->again);
    stream->peer.module->destroy(stream->peer.session);
    fd_close(&stream->local_fd);
    buf_destroy(&stream->to_peer);
    buf_destroy(&stream->from_peer);
    free(stream);
}
