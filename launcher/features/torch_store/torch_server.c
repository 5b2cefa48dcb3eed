/* SPDX-License-Identifier: Apache-2.0 */
#include "features/torch_store/torch_server.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "io/listener.h"

#define READ_SIZE ((size_t)64 << 10)
#define READS_IN_A_ROW 16  /* then others get their turn */
#define WRITES_IN_A_ROW 64 /* pieces */
#define NO_ROOM_MS 100     /* until it tries to send again */
#define NAMED_MAX 16       /* reasons why clients were dropped */

struct visitor {
    struct torch_server *server;
    LIST_ENTRY(visitor) others;
    struct torch_client *client;
    int fd;
    struct loop_fd *watch;
    bool lacks; /* memory of the kernel, although its socket is writable */
    struct torch_peer peer;
};

struct torch_server {
    struct loop *loop;
    const struct log *log;
    struct torch_store *store;
    struct listener *listener;
    struct loop_timer *memory; /* until it sends again */
    LIST_HEAD(, visitor) visitors;
    size_t count, limit;
    size_t dropped, named;
    struct error last; /* the reason that was named last */
    bool full;         /* was, and said so: of descriptors, or at its limit */
    uint8_t *bytes;    /* what comes is read into; the same for all */
};

static void visitor_destroy(struct visitor *visitor)
{
    struct torch_server *server = visitor->server;
    LIST_REMOVE(visitor, others);
    server->count--;
    torch_store_leave(visitor->client);
    loop_fd_destroy(visitor->watch);
    fd_close(&visitor->fd);
    free(visitor);
    if (server->count == server->limit - 1)
        listener_pause(server->listener, false);
}

/* Names the first one with each reason: the others are mostly of the same kind. */
static void drop(struct visitor *visitor, const struct error *err)
{
    struct torch_server *server = visitor->server;
    server->dropped++;
    if (server->named < NAMED_MAX && strcmp(server->last.text, err->text) != 0) {
        server->named++;
        server->last = *err;
        log_warning(server->log, "the store of torch.distributed dropped a client at %s: %s",
                    visitor->peer.address, err->text);
    }
    visitor_destroy(visitor);
}

static size_t unsent(const struct visitor *visitor)
{
    return send_queue_length(&visitor->client->out);
}

/* It can send more: its queries are done, or at least their turn. */
static bool is_read(const struct visitor *visitor)
{
    return unsent(visitor) < TORCH_UNREAD_MAX && !visitor->client->has_more;
}

static void watch_again(struct visitor *visitor)
{
    bool more = unsent(visitor) > 0 || visitor->client->has_more;
    bool writes = more && !visitor->lacks;
    loop_fd_watch(visitor->watch, (is_read(visitor) ? LOOP_READ : 0) | (writes ? LOOP_WRITE : 0));
}

/* Sends what the socket takes. A connection that is broken is found when it is read. */
static void flush(struct visitor *visitor)
{
    struct send_queue *out = &visitor->client->out;
    bool takes = true;
    visitor->lacks = false;
    for (int i = 0; i < WRITES_IN_A_ROW && takes; i++) {
        size_t length;
        const void *next = send_queue_next(out, &length);
        if (next == NULL)
            break;
        ssize_t sent = send(visitor->fd, next, length, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0)
            send_queue_consume(out, (size_t)sent);
        else if (sent == 0 || errno == EAGAIN || errno == EINTR)
            takes = false;
        else if (errno == ENOBUFS || errno == ENOMEM)
            takes = !(visitor->lacks = true);
        else
            send_queue_clear(out);
    }
    if (visitor->lacks)
        loop_timer_set(visitor->server->memory, NO_ROOM_MS);
    torch_client_sent(visitor->client);
    watch_again(visitor);
}

static void send_again(void *context)
{
    const struct torch_server *server = context;
    struct visitor *visitor;
    LIST_FOREACH (visitor, &server->visitors, others) {
        if (visitor->lacks)
            flush(visitor);
    }
}

static void answered(void *owner)
{
    flush(owner);
}

/* -1: it is gone. */
static int take(struct visitor *visitor, const uint8_t *bytes, size_t length)
{
    struct error err = ERROR_INIT;
    if (torch_client_take(visitor->client, bytes, length, clock_mono_ms(), &err) < 0) {
        drop(visitor, &err);
        return -1;
    }
    flush(visitor);
    return 0;
}

static void read_from(struct visitor *visitor)
{
    struct torch_server *server = visitor->server;
    for (int i = 0; i < READS_IN_A_ROW && is_read(visitor); i++) {
        ssize_t got = fd_read(visitor->fd, server->bytes, READ_SIZE);
        if (got < 0 && errno == EAGAIN)
            return;
        if (got <= 0) { /* it has gone, perhaps killed */
            visitor_destroy(visitor);
            return;
        }
        if (take(visitor, server->bytes, (size_t)got) < 0 || (size_t)got < READ_SIZE)
            return;
    }
}

static void ready(void *context, int what)
{
    struct visitor *visitor = context;
    if ((what & LOOP_WRITE) != 0) {
        flush(visitor);
        if (visitor->client->has_more && unsent(visitor) < TORCH_UNREAD_MAX &&
            take(visitor, NULL, 0) < 0)
            return;
    }
    if ((what & LOOP_READ) != 0)
        read_from(visitor);
}

static void name_peer(const struct sockaddr_storage *from, struct torch_peer *peer)
{
    const struct sockaddr_in *four = (const void *)from;
    const struct sockaddr_in6 *six = (const void *)from;
    if (from->ss_family == AF_INET6)
        torch_peer_name(peer, six->sin6_addr.s6_addr, sizeof(six->sin6_addr));
    else
        torch_peer_name(peer, (const uint8_t *)&four->sin_addr, sizeof(four->sin_addr));
    peer->port = ntohs(from->ss_family == AF_INET6 ? six->sin6_port : four->sin_port);
}

/* Once for all. */
static void say_full(struct torch_server *server, const char *how)
{
    if (!server->full)
        log_warning(server->log, "the store of torch.distributed has %zu connections%s",
                    server->count, how);
    server->full = true;
}

static void come(void *context, int fd, const struct sockaddr_storage *from)
{
    struct torch_server *server = context;
    int on = 1;
    struct visitor *visitor = MEM_NEW((struct visitor){.server = server, .fd = fd});
    name_peer(from, &visitor->peer);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    /* a host that loses its power sends no end; its ranks may be idle for days */
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    LIST_INSERT_HEAD(&server->visitors, visitor, others);
    server->count++;
    visitor->client = torch_store_join(server->store, visitor);
    visitor->watch = loop_fd_create(server->loop, fd, ready, visitor);
    watch_again(visitor);
    if (server->count < server->limit)
        return;
    listener_pause(server->listener, true);
    say_full(server, ", and accepts no more");
}

static void lacks_descriptors(void *context, const char *cause, bool for_long)
{
    (void)for_long;
    char *how AUTO_FREE = mem_printf(" and can accept no more: %s (raise the hard limit of open "
                                     "files: ulimit -Hn)",
                                     cause);
    say_full(context, how);
}

/* The agent needs some descriptors for other things. */
static size_t room_for_clients(size_t clients_max)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur == RLIM_INFINITY)
        return clients_max;
    size_t most = (size_t)(files.rlim_cur - files.rlim_cur / 4);
    return most < clients_max ? most : clients_max;
}

struct torch_server *torch_server_create(struct loop *loop, int port, size_t clients_max,
                                         const struct log *log, struct error *err)
{
    static const struct listener_ops listens = {come, lacks_descriptors};
    struct torch_server *server = mem_alloc(sizeof(*server));
    struct listener *listener = listener_create_at(loop, port, &listens, server);
    if (listener == NULL) {
        error_errno(err, errno, "cannot serve the store of torch.distributed on port %d", port);
        free(server);
        return NULL;
    }
    *server = (struct torch_server){.loop = loop,
                                    .log = log,
                                    .listener = listener,
                                    .limit = room_for_clients(clients_max),
                                    .bytes = mem_alloc(READ_SIZE)};
    server->store = torch_store_create(TORCH_MEMORY_MAX, answered);
    server->memory = loop_timer_create(loop, send_again, server);
    return server;
}

void torch_server_destroy(struct torch_server *server)
{
    if (server == NULL)
        return;
    /* no connection is left behind that would keep the next attempt off the port */
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    while (!LIST_EMPTY(&server->visitors)) {
        struct visitor *visitor = LIST_FIRST(&server->visitors);
        (void)setsockopt(visitor->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
        visitor_destroy(visitor);
    }
    if (server->dropped > 1)
        log_warning(server->log, "the store of torch.distributed dropped %zu clients",
                    server->dropped);
    loop_timer_destroy(server->memory);
    listener_destroy(server->listener);
    torch_store_destroy(server->store);
    free(server->bytes);
    free(server);
}

void torch_server_each_waiting(const struct torch_server *server,
                               void (*each)(void *context, const struct torch_waiting *waiting),
                               void *context)
{
    torch_store_each_waiting(server->store, clock_mono_ms(), each, context);
}

const struct torch_peer *torch_server_peer(const struct torch_waiting *waiting)
{
    return &((const struct visitor *)waiting->owner)->peer;
}

size_t torch_server_clients(const struct torch_server *server)
{
    return server->count;
}
