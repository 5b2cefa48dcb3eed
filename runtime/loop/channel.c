/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/channel.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "core/codec.h"

enum { HEADER = 4, READ_BYTES = 1 << 16 };
#define NS_PER_SECOND 1000000000

/* One connection. */
struct peer {
    int fd;           /* -1: it has ended */
    int rank, global; /* in the set, and in the job */
    struct buf in, out;
};

struct channel {
    int rank, ring;
    struct peer *peers;
    int count; /* the root has size - 1, others one, and a set of one rank none */
    struct pollfd *polls;
    int next; /* the peer from which channel_take() takes first: nobody is kept waiting */
};

void channel_close(struct channel *channel)
{
    if (channel == NULL)
        return;
    for (int i = 0; i < channel->count; i++) {
        fd_close(&channel->peers[i].fd);
        buf_destroy(&channel->peers[i].in);
        buf_destroy(&channel->peers[i].out);
    }
    fd_close(&channel->ring);
    free(channel->peers);
    free(channel->polls);
    free(channel);
}

static void prepare(int fd)
{
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

/* On failure, all `fds` are closed. */
static enum hvd_status meet(const struct channel_setup *setup, int *fds, int count,
                            struct error *err)
{
    struct pollfd stop = {.fd = setup->stop, .events = POLLIN};
    for (int i = 0; i < count; i++)
        fds[i] = -1;
    enum hvd_status status =
        setup->set.rank == 0 ? root_meet(setup, fds, err) : member_meet(setup, fds, err);
    if (status == HVD_ERR_PEER_LOST && poll(&stop, 1, 0) > 0)
        error_set(err, "a rank was lost before the members of a process set had met");
    for (int i = 0; i < count; i++) {
        if (status == HVD_OK)
            prepare(fds[i]);
        else
            fd_close(&fds[i]);
    }
    return status;
}

enum hvd_status channel_open(const struct channel_setup *setup, struct channel **channel,
                             struct error *err)
{
    struct channel *made = mem_alloc(sizeof *made);
    int count = setup->set.rank == 0 ? setup->set.size - 1 : 1;
    int *fds AUTO_FREE = mem_array((size_t)count, sizeof *fds);
    enum hvd_status status = HVD_OK;
    made->rank = setup->set.rank;
    made->ring = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (made->ring < 0) {
        error_errno(err, errno, "cannot make an eventfd");
        status = HVD_ERR_MEMORY;
    }
    if (status == HVD_OK && setup->set.size > 1)
        status = meet(setup, fds, count, err);
    if (status != HVD_OK) {
        channel_close(made);
        return status;
    }
    made->count = count;
    made->peers = mem_array((size_t)count, sizeof *made->peers);
    made->polls = mem_array((size_t)count + 1, sizeof *made->polls);
    for (int i = 0; i < count; i++) {
        made->peers[i].fd = fds[i];
        made->peers[i].rank = setup->set.rank == 0 ? i + 1 : 0;
        made->peers[i].global = setup->ranks[made->peers[i].rank];
        buf_init(&made->peers[i].in, 2 * CORE_MESSAGE_MAX);
        buf_init(&made->peers[i].out, 4 * CORE_MESSAGE_MAX);
    }
    *channel = made;
    return HVD_OK;
}

void channel_ring(struct channel *channel)
{
    eventfd_write(channel->ring, 1); /* full: it rings already */
}

void channel_each(const struct channel *channel, void (*each)(void *context, int fd, int rank),
                  void *context)
{
    for (int i = 0; i < channel->count; i++)
        each(context, channel->peers[i].fd, channel->peers[i].global);
}

static int lost(struct peer *peer, const char *why, struct error *err)
{
    fd_close(&peer->fd);
    return error_set(err, "the connection to rank %d ended%s%s", peer->global,
                     why == NULL ? "" : ": ", why == NULL ? "" : why);
}

/* -1 and an error: the peer is lost. */
static int flush(struct peer *peer, struct error *err)
{
    while (peer->out.length > 0 && peer->fd >= 0) {
        ssize_t sent =
            send(peer->fd, buf_text(&peer->out), peer->out.length, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0)
            buf_consume(&peer->out, (size_t)sent);
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            return 0;
        else if (errno != EINTR)
            return lost(peer, strerror(errno), err);
    }
    return 0;
}

int channel_send(struct channel *channel, int to, const void *bytes, size_t length,
                 struct error *err)
{
    for (int i = 0; i < channel->count; i++) {
        struct peer *peer = &channel->peers[i];
        unsigned char header[HEADER];
        if (peer->rank != to)
            continue;
        if (peer->fd < 0)
            return lost(peer, NULL, err);
        for (size_t b = 0; b < HEADER; b++)
            header[b] = (unsigned char)(length >> 8 * b);
        if (buf_append(&peer->out, header, HEADER) != 0 ||
            buf_append(&peer->out, bytes, length) != 0)
            return lost(peer, "it does not read", err);
        return flush(peer, err);
    }
    return 0;
}

void channel_hang_up(struct channel *channel)
{
    for (int i = 0; i < channel->count; i++)
        if (channel->peers[i].fd >= 0)
            shutdown(channel->peers[i].fd, SHUT_WR);
}

bool channel_is_alone(const struct channel *channel)
{
    for (int i = 0; i < channel->count; i++)
        if (channel->peers[i].fd >= 0)
            return false;
    return true;
}

bool channel_has_unsent(const struct channel *channel)
{
    for (int i = 0; i < channel->count; i++)
        if (channel->peers[i].fd >= 0 && channel->peers[i].out.length > 0)
            return true;
    return false;
}

/* -1 and an error: the peer is lost. */
static int receive(struct peer *peer, struct error *err)
{
    for (;;) {
        void *room = buf_reserve(&peer->in, READ_BYTES);
        if (room == NULL)
            return lost(peer, "it sends too much", err);
        ssize_t got = recv(peer->fd, room, READ_BYTES, MSG_DONTWAIT);
        if (got > 0)
            buf_commit(&peer->in, (size_t)got);
        if (got == 0)
            return lost(peer, NULL, err);
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return 0;
        if (got < 0 && errno != EINTR)
            return lost(peer, strerror(errno), err);
        if (got > 0 && got < READ_BYTES)
            return 0;
    }
}

static nfds_t fill_polls(struct channel *channel)
{
    nfds_t count = 0;
    channel->polls[count++] = (struct pollfd){.fd = channel->ring, .events = POLLIN};
    for (int i = 0; i < channel->count; i++) {
        const struct peer *peer = &channel->peers[i];
        short events = (short)(POLLIN | (peer->out.length > 0 ? POLLOUT : 0));
        channel->polls[count++] = (struct pollfd){.fd = peer->fd, .events = events};
    }
    return count;
}

int channel_wait(struct channel *channel, int64_t timeout_ns, struct error *err)
{
    struct timespec limit = {.tv_sec = timeout_ns / NS_PER_SECOND,
                             .tv_nsec = timeout_ns % NS_PER_SECOND};
    int rc = 0;
    if (ppoll(channel->polls, fill_polls(channel), timeout_ns < 0 ? NULL : &limit, NULL) < 0)
        return 0; /* a signal */
    if (channel->polls[0].revents != 0) {
        eventfd_t rings;
        eventfd_read(channel->ring, &rings);
    }
    for (int i = 0; i < channel->count; i++) {
        struct peer *peer = &channel->peers[i];
        short events = channel->polls[i + 1].revents;
        if (peer->fd >= 0 && (events & POLLOUT) != 0 && flush(peer, err) != 0)
            rc = -1;
        if (peer->fd >= 0 && (events & (POLLIN | POLLHUP | POLLERR)) != 0 &&
            receive(peer, err) != 0)
            rc = -1;
    }
    return rc;
}

/* 1: a message; 0: none; -1 and an error: the peer is lost, because nothing sensible can follow. */
static int take_from(struct peer *peer, struct buf *message, struct error *err)
{
    const unsigned char *header = (const unsigned char *)buf_text(&peer->in);
    size_t length = 0;
    if (peer->in.length < HEADER)
        return 0;
    for (size_t b = 0; b < HEADER; b++)
        length |= (size_t)header[b] << 8 * b;
    if (length > CORE_MESSAGE_MAX) {
        buf_clear(&peer->in);
        return lost(peer, "its message is too long", err);
    }
    if (peer->in.length - HEADER < length)
        return 0;
    buf_clear(message);
    buf_append(message, buf_text(&peer->in) + HEADER, length);
    buf_consume(&peer->in, HEADER + length);
    return 1;
}

int channel_take(struct channel *channel, int *from, struct buf *message, struct error *err)
{
    for (int i = 0; i < channel->count; i++) {
        struct peer *peer = &channel->peers[(channel->next + i) % channel->count];
        int taken = take_from(peer, message, err);
        if (taken == 0)
            continue;
        channel->next = (channel->next + i + 1) % channel->count;
        *from = peer->rank;
        return taken;
    }
    return 0;
}
