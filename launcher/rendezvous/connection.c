/* SPDX-License-Identifier: Apache-2.0 */
#include "rendezvous/connection.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "rendezvous/http.h"

enum { READ_CHUNK = 64 * 1024 };

static void list_remove(struct rendezvous_connection *connection)
{
    if (connection->place.tqe_prev == NULL)
        return; /* it waits, and is not in the list */
    TAILQ_REMOVE(&connection->busy->connections, connection, place);
    connection->place.tqe_prev = NULL;
}

/* Something new begins, with a deadline of its own, at the end of the list. */
static void list_append(struct rendezvous_connection *connection)
{
    list_remove(connection);
    connection->began_ms = loop_now_ms(connection->loop);
    TAILQ_INSERT_TAIL(&connection->busy->connections, connection, place);
}

static void account(struct rendezvous_connection *connection, size_t bytes)
{
    connection->busy->bytes += bytes - connection->bytes;
    connection->bytes = bytes;
}

struct rendezvous_connection *
rendezvous_connection_create(struct loop *loop, int fd, uint64_t token,
                             struct rendezvous_connection_list *busy,
                             void (*ready)(void *context, uint64_t token, int what), void *context)
{
    struct rendezvous_connection *connection = MEM_NEW((struct rendezvous_connection){
        .loop = loop, .fd = fd, .token = token, .busy = busy, .ready = ready, .context = context});
    connection->parser = http_parser_create(RENDEZVOUS_BODY_MAX);
    buf_init(&connection->output, (size_t)RENDEZVOUS_BODY_MAX + HTTP_HEAD_MAX);
    list_append(connection);
    return connection;
}

void rendezvous_connection_destroy(struct rendezvous_connection *connection)
{
    if (connection == NULL)
        return;
    list_remove(connection);
    account(connection, 0);
    loop_fd_destroy(connection->watch);
    fd_close(&connection->fd);
    http_parser_destroy(connection->parser);
    buf_destroy(&connection->output);
    free(connection);
}

static void watch_ready(void *context, int what)
{
    struct rendezvous_connection *connection = context;
    connection->ready(connection->context, connection->token, what);
}

static void watch(struct rendezvous_connection *connection, int what)
{
    if (connection->watch == NULL)
        connection->watch =
            loop_fd_create(connection->loop, connection->fd, watch_ready, connection);
    loop_fd_watch(connection->watch, what);
}

static enum rendezvous_step take_bytes(struct rendezvous_connection *connection, const char *bytes,
                                       size_t length)
{
    enum http_progress progress = http_parser_feed(connection->parser, bytes, length);
    account(connection, connection->parser->line.room + connection->parser->body.room);
    switch (progress) {
    case HTTP_BAD: return RENDEZVOUS_STEP_MALFORMED;
    case HTTP_DONE:
        connection->state = RENDEZVOUS_WAITING;
        list_remove(connection);
        return RENDEZVOUS_STEP_REQUEST;
    case HTTP_MORE: break;
    }
    return RENDEZVOUS_STEP_WAIT;
}

/* One read, in all states but RENDEZVOUS_WRITING. */
static enum rendezvous_step do_read(struct rendezvous_connection *connection)
{
    char chunk[READ_CHUNK];
    ssize_t got = fd_read(connection->fd, chunk, sizeof(chunk));
    if (got < 0 && errno == EAGAIN) {
        watch(connection, LOOP_READ);
        return RENDEZVOUS_STEP_WAIT;
    }
    if (got <= 0)
        return connection->state == RENDEZVOUS_WAITING ? RENDEZVOUS_STEP_DROPPED
                                                       : RENDEZVOUS_STEP_CLOSE;
    enum rendezvous_step step = RENDEZVOUS_STEP_WAIT;
    if (connection->state == RENDEZVOUS_READING)
        step = take_bytes(connection, chunk, (size_t)got);
    if (step == RENDEZVOUS_STEP_WAIT)
        watch(connection, LOOP_READ);
    return step;
}

void rendezvous_connection_hold(struct rendezvous_connection *connection)
{
    http_parser_destroy(connection->parser);
    connection->parser = NULL;
    account(connection, 0);
    watch(connection, LOOP_READ);
}

static enum rendezvous_step after_write(struct rendezvous_connection *connection)
{
    if (!connection->refused)
        return RENDEZVOUS_STEP_CLOSE;
    shutdown(connection->fd, SHUT_WR);
    connection->state = RENDEZVOUS_LINGERING;
    list_append(connection);
    watch(connection, LOOP_READ);
    return RENDEZVOUS_STEP_WAIT;
}

static enum rendezvous_step do_write(struct rendezvous_connection *connection)
{
    ssize_t sent = send(connection->fd, buf_text(&connection->output), connection->output.length,
                        MSG_NOSIGNAL);
    if (sent < 0)
        return errno == EAGAIN || errno == EINTR ? RENDEZVOUS_STEP_WAIT : RENDEZVOUS_STEP_CLOSE;
    buf_consume(&connection->output, (size_t)sent);
    account(connection, connection->output.length > 0 ? connection->output.room : 0);
    return connection->output.length > 0 ? RENDEZVOUS_STEP_WAIT : after_write(connection);
}

enum rendezvous_step rendezvous_connection_ready(struct rendezvous_connection *connection, int what)
{
    if (connection->state == RENDEZVOUS_WRITING)
        return do_write(connection);
    return (what & LOOP_READ) != 0 ? do_read(connection) : RENDEZVOUS_STEP_WAIT;
}

enum rendezvous_step rendezvous_connection_answer(struct rendezvous_connection *connection,
                                                  int status, const void *body, size_t length)
{
    char head[HTTP_HEAD_MAX];
    size_t head_length = http_response_head(head, status, length);
    struct iovec parts[2] = {{head, head_length}, {(void *)(uintptr_t)body, length}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = length > 0 ? 2 : 1};
    ssize_t result = sendmsg(connection->fd, &message, MSG_NOSIGNAL);
    if (result < 0 && errno != EAGAIN && errno != EINTR)
        return RENDEZVOUS_STEP_CLOSE;
    size_t sent = result < 0 ? 0 : (size_t)result;
    connection->state = RENDEZVOUS_WRITING;
    list_append(connection);
    if (sent == head_length + length)
        return after_write(connection);
    size_t of_head = sent < head_length ? sent : head_length, of_body = sent - of_head;
    if (buf_append(&connection->output, head + of_head, head_length - of_head) < 0 ||
        buf_append(&connection->output, (const char *)body + of_body, length - of_body) < 0)
        return RENDEZVOUS_STEP_CLOSE; /* longer than any blob that was ever taken in */
    http_parser_destroy(connection->parser);
    connection->parser = NULL;
    account(connection, connection->output.room);
    watch(connection, LOOP_WRITE);
    return RENDEZVOUS_STEP_WAIT;
}

enum rendezvous_step rendezvous_connection_refuse(struct rendezvous_connection *connection)
{
    connection->refused = true;
    return rendezvous_connection_answer(connection, connection->parser->status, NULL, 0);
}
