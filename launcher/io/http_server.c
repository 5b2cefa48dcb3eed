/* SPDX-License-Identifier: Apache-2.0 */
#include "io/http_server.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "io/loop.h"

#define BACKLOG 128
#define SWEEP_MS 50 /* while there are connections */
#define POLICY "Content-Security-Policy"
#define BODY_MAX 1024 /* requests need none; 0 may also limit the answers of libevent 2.1 */

struct http_server {
    struct loop *loop;
    void (*asked)(void *context, struct http_request *request,
                  const struct http_question *question);
    void *context;
    struct listen_address address;
    char *url;
    bool bound_path; /* the Unix socket is ours to remove */
    int fd;          /* that listens; evhttp's once it has it */
    struct evhttp *http;
    struct evconnlistener *listener;
    LIST_HEAD(, http_connection) connections;
    int count;
    struct loop_timer *sweep;
    LIST_HEAD(, http_request) requests;
};

/* evhttp frees a connection without a word. But we hold its stream too, and a stream that evhttp
 * has let go has no callbacks any more. */
struct http_connection {
    struct http_server *server;
    struct bufferevent *stream;
    struct loop_timer *deadline;
    LIST_ENTRY(http_connection) all;
};

struct http_request {
    struct http_server *server;
    struct evhttp_request *request;
    LIST_ENTRY(http_request) all;
};

static void connection_destroy(struct http_connection *connection)
{
    struct http_server *server = connection->server;
    LIST_REMOVE(connection, all);
    server->count--;
    loop_timer_destroy(connection->deadline);
    bufferevent_decref(connection->stream); /* closes the socket, which evhttp has shut down */
    free(connection);
}

static bool is_gone(const struct http_connection *connection)
{
    bufferevent_data_cb readable, writable;
    bufferevent_event_cb event;
    void *context;
    bufferevent_getcb(connection->stream, &readable, &writable, &event, &context);
    return readable == NULL && writable == NULL && event == NULL;
}

static void sweep(void *context)
{
    struct http_server *server = context;
    struct http_connection *next;
    for (struct http_connection *at = LIST_FIRST(&server->connections); at != NULL; at = next) {
        next = LIST_NEXT(at, all);
        if (is_gone(at))
            connection_destroy(at);
    }
    if (server->count < HTTP_CONNECTIONS_MAX)
        evconnlistener_enable(server->listener);
    else
        evconnlistener_disable(server->listener);
    if (server->count > 0)
        loop_timer_set(server->sweep, SWEEP_MS);
}

/* evhttp sees the end of the stream, and frees the connection. */
static void connection_late(void *context)
{
    struct http_connection *connection = context;
    shutdown(bufferevent_getfd(connection->stream), SHUT_RDWR);
}

static struct bufferevent *new_stream(struct event_base *base, void *context)
{
    struct http_server *server = context;
    struct http_connection *connection = mem_alloc(sizeof(*connection));
    sweep(server);
    *connection = (struct http_connection){.server = server};
    connection->stream = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
    bufferevent_incref(connection->stream);
    connection->deadline = loop_timer_create(server->loop, connection_late, connection);
    loop_timer_set(connection->deadline, HTTP_CONNECTION_MS);
    LIST_INSERT_HEAD(&server->connections, connection, all);
    if (++server->count == HTTP_CONNECTIONS_MAX)
        evconnlistener_disable(server->listener);
    loop_timer_set(server->sweep, SWEEP_MS);
    return connection->stream;
}

static void request_free(struct http_request *request)
{
    LIST_REMOVE(request, all);
    free(request);
}

static void put_headers(struct evkeyvalq *headers, const char *type, size_t length)
{
    char *digits AUTO_FREE = mem_printf("%zu", length);
    if (evhttp_find_header(headers, POLICY) == NULL)
        evhttp_add_header(headers, POLICY, "default-src 'none'; frame-ancestors 'none'");
    evhttp_add_header(headers, "Content-Type", type);
    evhttp_add_header(headers, "Content-Length", digits); /* evhttp adds none for HEAD */
    evhttp_add_header(headers, "Cache-Control", "no-store");
    evhttp_add_header(headers, "Referrer-Policy", "no-referrer");
    evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
    evhttp_add_header(headers, "Cross-Origin-Resource-Policy", "same-origin");
    evhttp_add_header(headers, "Connection", "close");
}

static void send_answer(struct evhttp_request *raw, int status, const char *type, const void *bytes,
                        size_t length)
{
    struct evbuffer *body = evbuffer_new();
    if (evhttp_request_get_command(raw) != EVHTTP_REQ_HEAD)
        evbuffer_add(body, bytes, length);
    put_headers(evhttp_request_get_output_headers(raw), type, length);
    evhttp_send_reply(raw, status, NULL, body);
    evbuffer_free(body);
}

/* evhttp itself would answer 501 with a page in HTML, and probes ask with HEAD. */
static bool is_refused(struct evhttp_request *raw)
{
    static const char text[] = "only GET and HEAD are allowed\n";
    enum evhttp_cmd_type method = evhttp_request_get_command(raw);
    if (method == EVHTTP_REQ_GET || method == EVHTTP_REQ_HEAD)
        return false;
    struct evkeyvalq *headers = evhttp_request_get_output_headers(raw);
    evhttp_add_header(headers, "Allow", "GET, HEAD");
    send_answer(raw, 405, "text/plain; charset=utf-8", text, sizeof(text) - 1);
    return true;
}

static void got_request(struct evhttp_request *raw, void *context)
{
    struct http_server *server = context;
    if (is_refused(raw))
        return;
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(raw);
    const char *path = uri == NULL ? NULL : evhttp_uri_get_path(uri);
    struct http_request *request = MEM_NEW((struct http_request){.server = server, .request = raw});
    LIST_INSERT_HEAD(&server->requests, request, all);
    struct evkeyvalq *headers = evhttp_request_get_input_headers(raw);
    struct http_question question = {.path = path == NULL ? "" : path,
                                     .query = uri == NULL ? NULL : evhttp_uri_get_query(uri),
                                     .accept = evhttp_find_header(headers, "Accept"),
                                     .host = evhttp_find_header(headers, "Host")};
    server->asked(server->context, request, &question);
}

int http_request_socket(const struct http_request *request)
{
    struct evhttp_connection *connection = evhttp_request_get_connection(request->request);
    return bufferevent_getfd(evhttp_connection_get_bufferevent(connection));
}

void http_request_header(struct http_request *request, const char *name, const char *value)
{
    struct evkeyvalq *headers = evhttp_request_get_output_headers(request->request);
    evhttp_remove_header(headers, name);
    evhttp_add_header(headers, name, value);
}

void http_request_answer(struct http_request *request, int status, const char *type,
                         const void *bytes, size_t length)
{
    struct evhttp_request *raw = request->request;
    request_free(request);
    send_answer(raw, status, type, bytes, length);
}

/* Does somebody serve the socket at this path? */
static bool is_served(const struct listen_address *address)
{
    int fd AUTO_FD = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd < 0 || connect(fd, &address->at.any, address->length) == 0 || errno != ECONNREFUSED;
}

static int bind_socket(struct http_server *server)
{
    const struct listen_address *address = &server->address;
    int yes = 1;
    if (address->is_path && fchmod(server->fd, 0600) < 0) /* bind(2) takes the mode from it */
        return -1;
    if (!address->is_path &&
        setsockopt(server->fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) < 0)
        return -1;
    int result = bind(server->fd, &address->at.any, address->length);
    if (result < 0 && errno == EADDRINUSE && address->is_path && !is_served(address)) {
        unlink(address->at.local.sun_path);
        result = bind(server->fd, &address->at.any, address->length);
    }
    server->bound_path = result == 0 && address->is_path;
    return result;
}

static int open_socket(struct http_server *server, struct error *err)
{
    struct listen_address *address = &server->address;
    server->fd = socket(address->at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (server->fd < 0 || bind_socket(server) < 0 || listen(server->fd, BACKLOG) < 0) {
        char *url AUTO_FREE = listen_address_url(address);
        return error_errno(err, errno, "cannot listen on %s", url);
    }
    socklen_t length = sizeof(address->at);
    if (!address->is_path && getsockname(server->fd, &address->at.any, &length) < 0)
        return error_errno(err, errno, "cannot learn the port");
    server->url = listen_address_url(address);
    return 0;
}

static void open_http(struct http_server *server)
{
    server->http = evhttp_new(loop_base(server->loop));
    evhttp_set_allowed_methods(server->http, UINT16_MAX); /* is_refused() decides */
    evhttp_set_max_headers_size(server->http, HTTP_SERVER_HEADERS_MAX);
    evhttp_set_max_body_size(server->http, BODY_MAX);
    evhttp_set_timeout(server->http, HTTP_CONNECTION_MS / 1000);
    server->sweep = loop_timer_create(server->loop, sweep, server);
    evhttp_set_bevcb(server->http, new_stream, server);
    evhttp_set_gencb(server->http, got_request, server);
    struct evhttp_bound_socket *bound = evhttp_accept_socket_with_handle(server->http, server->fd);
    server->fd = -1;
    server->listener = evhttp_bound_socket_get_listener(bound);
}

struct http_server *http_server_create(struct loop *loop, const struct listen_address *address,
                                       void (*asked)(void *context, struct http_request *request,
                                                     const struct http_question *question),
                                       void *context, struct error *err)
{
    struct http_server *server = MEM_NEW((struct http_server){
        .loop = loop, .asked = asked, .context = context, .address = *address, .fd = -1});
    if (open_socket(server, err) < 0) {
        http_server_destroy(server);
        return NULL;
    }
    open_http(server);
    return server;
}

const char *http_server_url(const struct http_server *server)
{
    return server->url;
}

void http_server_flush(struct http_server *server)
{
    struct http_connection *at;
    LIST_FOREACH (at, &server->connections, all) {
        struct evbuffer *out = bufferevent_get_output(at->stream);
        bool left = evbuffer_get_length(out) > 0;
        while (left)
            left = evbuffer_write(out, bufferevent_getfd(at->stream)) > 0 &&
                   evbuffer_get_length(out) > 0;
    }
}

void http_server_destroy(struct http_server *server)
{
    if (server == NULL)
        return;
    while (!LIST_EMPTY(&server->requests))
        request_free(LIST_FIRST(&server->requests));
    if (server->http != NULL)
        evhttp_free(server->http);
    while (!LIST_EMPTY(&server->connections))
        connection_destroy(LIST_FIRST(&server->connections));
    loop_timer_destroy(server->sweep);
    fd_close(&server->fd);
    if (server->bound_path)
        unlink(server->address.at.local.sun_path);
    free(server->url);
    free(server);
}
