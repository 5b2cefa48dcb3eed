/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small HTTP server in the loop: GET and HEAD requests in, answers out, at once or
 * later; other methods get 405. It is libevent's, with limits. At most HTTP_CONNECTIONS_MAX
 * connections are open, and the next ones wait. A connection serves one request and lasts
 * HTTP_CONNECTION_MS at most.
 *
 * No answer may be kept by a cache, and a browser loads nothing that an answer names unless
 * http_request_header() allows it.
 */
#pragma once

#include "io/listener.h"
#include "io/loop.h"

#define HTTP_CONNECTIONS_MAX 64
#define HTTP_CONNECTION_MS 10000
#define HTTP_SERVER_HEADERS_MAX 16384

struct http_server;
struct http_request;

/* What a client asks for, as it wrote it; borrowed. NULL: it did not say. */
struct http_question {
    const char *path;          /* without the query; never NULL */
    const char *query;         /* behind the '?' */
    const char *accept, *host; /* headers */
};

/* A Unix socket has the mode 0600, and replaces one that nobody serves. NULL: the address cannot be
 * used. `asked` must lead to one http_request_answer(). */
struct http_server *http_server_create(struct loop *loop, const struct listen_address *address,
                                       void (*asked)(void *context, struct http_request *request,
                                                     const struct http_question *question),
                                       void *context, struct error *err);
/* All requests without an answer are gone. Removes the Unix socket; accepts NULL. */
void http_server_destroy(struct http_server *server);

const char *http_server_url(const struct http_server *server); /* with the port that it got */

/* Sends what is answered as far as the sockets take it, without waiting. For the end of a process
 * whose loop runs no more. */
void http_server_flush(struct http_server *server);

int http_request_socket(const struct http_request *request); /* its connection; borrowed */

/* A header of the answer, in place of one with the same name. */
void http_request_header(struct http_request *request, const char *name, const char *value);
/* `request` is gone after it. The bytes are copied. */
void http_request_answer(struct http_request *request, int status, const char *type,
                         const void *bytes, size_t length);
