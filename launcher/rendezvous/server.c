/* SPDX-License-Identifier: Apache-2.0 */
#include "rendezvous/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/map.h"
#include "base/mem.h"
#include "io/listener.h"
#include "rendezvous/connection.h"
#include "rendezvous/peer.h"

enum {
    ACCEPT_BATCH = 64, /* per loop turn, so that a flood of connects starves no other work */
    BUSY_MS = 30 * 1000,
    CONNECTIONS_MIN = 64,
    CONNECTIONS_MAX = 16384,
    BYTES_MAX = 64 * 1024 * 1024,
    RETRY_MS = 100, /* after an accept that failed for want of descriptors or memory */
    STARVED_TRIES = 10,
};

struct rendezvous_server {
    struct loop *loop;
    const struct rendezvous_server_ops *ops;
    void *context;
    int fd, port;
    int failures; /* of accept, one after the other */
    struct loop_fd *watch;
    struct loop_timer *retry, *late;
    int busy_ms;
    struct rendezvous_peer *peer;
    uid_t uid;
    struct map open; /* connections by token; no token comes twice */
    uint64_t last_token;
    size_t open_limit, bytes_limit;
    struct rendezvous_connection_list busy; /* those with a deadline, the next one first */
    struct rendezvous_server_counts counts;
};

static size_t default_limit(void)
{
    struct rlimit limit;
    size_t files = CONNECTIONS_MAX;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 2 * CONNECTIONS_MAX)
        files = (size_t)limit.rlim_cur / 2; /* the other half is for the agent's own use */
    return files < CONNECTIONS_MIN ? CONNECTIONS_MIN : files;
}

static int listen_local(struct rendezvous_server *server, struct error *err)
{
    struct socket_address at;
    socket_address_set(&at, "127.0.0.1", 0);
    server->fd = socket_listen(&at);
    if (server->fd < 0)
        return error_errno(err, errno, "cannot listen on 127.0.0.1 for the rendezvous");
    server->port = socket_port(&at);
    return 0;
}

/* With none, new clients wait in the kernel's queue. */
static bool has_room(const struct rendezvous_server *server)
{
    return server->open.count < server->open_limit ||
           TAILQ_FIRST(&server->busy.connections) != NULL;
}

static void update_watch(struct rendezvous_server *server)
{
    bool room = has_room(server) && !loop_timer_is_set(server->retry);
    loop_fd_watch(server->watch, room ? LOOP_READ : 0);
}

static void retry_fired(void *context)
{
    update_watch(context);
}

static void schedule_late(struct rendezvous_server *server)
{
    struct rendezvous_connection *first = TAILQ_FIRST(&server->busy.connections);
    if (first == NULL) {
        loop_timer_clear(server->late);
        return;
    }
    int64_t due = first->began_ms + server->busy_ms;
    loop_timer_set(server->late, due - loop_now_ms(server->loop));
}

/* The only place where a connection ends. */
static void close_connection(struct rendezvous_server *server,
                             struct rendezvous_connection *connection)
{
    map_remove(&server->open, map_number(connection->token));
    rendezvous_connection_destroy(connection);
    update_watch(server);
}

/* The timer is not moved at each change of the list's head: it fires early, and looks again. */
static void late_fired(void *context)
{
    struct rendezvous_server *server = context;
    int64_t now = loop_now_ms(server->loop);
    struct rendezvous_connection *first = TAILQ_FIRST(&server->busy.connections);
    while (first != NULL && first->began_ms + server->busy_ms <= now) {
        server->counts.late++;
        close_connection(server, first);
        first = TAILQ_FIRST(&server->busy.connections);
    }
    schedule_late(server);
}

/* Closes those that have been at it the longest while there are more, or more bytes, than allowed.
 */
static void make_room(struct rendezvous_server *server, size_t open_limit)
{
    struct rendezvous_connection *first = TAILQ_FIRST(&server->busy.connections);
    while (first != NULL &&
           (server->open.count > open_limit || server->busy.bytes > server->bytes_limit)) {
        server->counts.pushed_out++;
        close_connection(server, first);
        first = TAILQ_FIRST(&server->busy.connections);
    }
}

static struct rendezvous_connection *find(const struct rendezvous_server *server, uint64_t token)
{
    return map_get(&server->open, map_number(token));
}

static void hand_out(struct rendezvous_server *server, uint64_t token,
                     const struct rendezvous_request *request)
{
    server->ops->request(server->context, token, request);
    /* Looked up again: the answer may have come at once and closed the connection. */
    struct rendezvous_connection *connection = find(server, token);
    if (connection != NULL && connection->state == RENDEZVOUS_WAITING)
        rendezvous_connection_hold(connection);
}

/* What a connection's step ended in. The caller must not touch the connection afterwards. */
static void after_step(struct rendezvous_server *server, struct rendezvous_connection *connection,
                       enum rendezvous_step step)
{
    uint64_t token = connection->token;
    switch (step) {
    case RENDEZVOUS_STEP_WAIT:
        if (!loop_timer_is_set(server->late))
            schedule_late(server);
        make_room(server, server->open_limit);
        update_watch(server);
        break;
    case RENDEZVOUS_STEP_REQUEST: hand_out(server, token, &connection->parser->request); break;
    case RENDEZVOUS_STEP_MALFORMED:
        server->counts.malformed++;
        after_step(server, connection, rendezvous_connection_refuse(connection));
        break;
    case RENDEZVOUS_STEP_DROPPED:
        close_connection(server, connection);
        server->ops->dropped(server->context, token);
        break;
    case RENDEZVOUS_STEP_CLOSE: close_connection(server, connection); break;
    }
}

static void connection_ready(void *context, uint64_t token, int what)
{
    struct rendezvous_server *server = context;
    struct rendezvous_connection *connection = find(server, token);
    if (connection != NULL)
        after_step(server, connection, rendezvous_connection_ready(connection, what));
}

static void welcome(struct rendezvous_server *server, int fd)
{
    uid_t uid = 0;
    server->counts.accepted++;
    if (rendezvous_peer_uid(server->peer, fd, &uid) < 0 || uid != server->uid) {
        server->counts.refused++;
        close(fd);
        return;
    }
    make_room(server, server->open_limit - 1);
    struct rendezvous_connection *connection = rendezvous_connection_create(
        server->loop, fd, ++server->last_token, &server->busy, connection_ready, server);
    map_put(&server->open, map_number(connection->token), connection);
    /* Most requests are here already. */
    after_step(server, connection, rendezvous_connection_ready(connection, LOOP_READ));
}

static void accept_failed(struct rendezvous_server *server, int errnum)
{
    loop_timer_set(server->retry, RETRY_MS);
    if (++server->failures == STARVED_TRIES && server->ops->starved != NULL)
        server->ops->starved(server->context, errnum);
}

static void accept_ready(void *context, int what)
{
    (void)what;
    struct rendezvous_server *server = context;
    for (int i = 0; i < ACCEPT_BATCH && has_room(server); i++) {
        int fd = accept4(server->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            server->failures = 0;
            welcome(server, fd);
            continue;
        }
        if (errno == EINTR || errno == ECONNABORTED)
            continue;
        if (errno != EAGAIN)
            accept_failed(server, errno);
        break;
    }
    update_watch(server);
}

struct rendezvous_server *rendezvous_server_create(struct loop *loop,
                                                   const struct rendezvous_server_ops *ops,
                                                   void *context, struct error *err)
{
    struct rendezvous_server *server = MEM_NEW((struct rendezvous_server){
        .loop = loop, .ops = ops, .context = context, .fd = -1, .busy_ms = BUSY_MS});
    TAILQ_INIT(&server->busy.connections);
    server->bytes_limit = BYTES_MAX;
    server->uid = geteuid();
    server->open_limit = default_limit();
    server->peer = rendezvous_peer_create();
    server->retry = loop_timer_create(loop, retry_fired, server);
    server->late = loop_timer_create(loop, late_fired, server);
    if (listen_local(server, err) < 0) {
        rendezvous_server_destroy(server);
        return NULL;
    }
    server->watch = loop_fd_create(loop, server->fd, accept_ready, server);
    update_watch(server);
    return server;
}

static void destroy_connection(void *connection)
{
    rendezvous_connection_destroy(connection);
}

void rendezvous_server_destroy(struct rendezvous_server *server)
{
    if (server == NULL)
        return;
    map_clear(&server->open, destroy_connection);
    loop_fd_destroy(server->watch);
    loop_timer_destroy(server->retry);
    loop_timer_destroy(server->late);
    rendezvous_peer_destroy(server->peer);
    fd_close(&server->fd);
    free(server);
}

int rendezvous_server_port(const struct rendezvous_server *server)
{
    return server->port;
}

void rendezvous_server_limit(struct rendezvous_server *server, int busy_ms, size_t connections)
{
    if (busy_ms > 0)
        server->busy_ms = busy_ms;
    if (connections > 0)
        server->open_limit = connections;
    schedule_late(server);
    update_watch(server);
}

void rendezvous_server_expect(struct rendezvous_server *server, uint64_t bytes)
{
    server->bytes_limit = bytes > BYTES_MAX ? (size_t)bytes : BYTES_MAX;
}

void rendezvous_server_reply(struct rendezvous_server *server, uint64_t token, int status,
                             const void *body, size_t length)
{
    struct rendezvous_connection *connection = find(server, token);
    if (connection == NULL || connection->state != RENDEZVOUS_WAITING)
        return;
    server->counts.answered++;
    after_step(server, connection, rendezvous_connection_answer(connection, status, body, length));
}

const struct rendezvous_server_counts *
rendezvous_server_counts(const struct rendezvous_server *server)
{
    return &server->counts;
}
