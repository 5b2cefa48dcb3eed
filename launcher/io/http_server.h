/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small HTTP server in the loop: GET requests in, answers out, at once or later. It is
 * libevent's, with limits. At most HTTP_CONNECTIONS_MAX connections are open, and the next ones
 * wait. A connection serves one request and lasts HTTP_CONNECTION_MS at most.
 */
#pragma once

#include "io/listen_address.h"
#include "io/loop.h"

#define HTTP_CONNECTIONS_MAX 16
#define HTTP_CONNECTION_MS 10000
#define HTTP_HEADERS_MAX 16384

struct http_server;
struct http_request;

struct http_server_ops {
    /* Somebody asks for `path` (without a query), and must get one http_request_answer(). `accept`
     * is the header of that name; NULL: none. Borrowed. */
    void (*asked)(void *context, struct http_request *request, const char *path,
                  const char *accept);
};

/* A Unix socket has the mode 0600, and replaces one that nobody serves. NULL: the address cannot be
 * used. `ops` and `context` outlive the server. */
struct http_server *http_server_create(struct loop *loop, const struct listen_address *address,
                                       const struct http_server_ops *ops, void *context,
                                       struct error *err);
/* All requests without an answer are gone. Removes the Unix socket; accepts NULL. */
void http_server_destroy(struct http_server *server);

const char *http_server_url(const struct http_server *server); /* with the port that it got */

/* `request` is gone after it. The bytes are copied. */
void http_request_answer(struct http_request *request, int status, const char *type,
                         const void *bytes, size_t length);
