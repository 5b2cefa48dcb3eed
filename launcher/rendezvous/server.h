/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's HTTP server for the workers of its own node: 127.0.0.1, a port that the kernel chose,
 * one request per connection. It does not interpret requests. It hands each one to its owner with a
 * token, and writes the answer when rendezvous_server_reply() brings it.
 *
 * Trust: it serves only processes of our own user, and asks the kernel at every connection. It
 * closes others unread and counts them.
 *
 * Bounds: a client has 30 s to send its request, and 30 s to read its answer, in whatever pieces.
 * Between the two it may wait without limit. There are never more connections than the descriptor
 * limit allows, and the bytes sent and not read are bounded. At a bound, a new connection pushes
 * out the one that has been sending or reading the longest. When all connections wait for answers,
 * new ones stay in the kernel's queue.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "io/loop.h"
#include "rendezvous/http.h"

struct rendezvous_server;

struct rendezvous_server_ops {
    /* A complete, well-formed request; borrowed until this returns. May reply at once. */
    void (*request)(void *context, uint64_t token, const struct rendezvous_request *request);
    /* The client of a request that is not answered yet has gone. */
    void (*dropped)(void *context, uint64_t token);
    /* For 1 s, clients have waited to be accepted because there is no descriptor or no memory for
     * them. Once, until a client is accepted. The server tries again and again. */
    void (*starved)(void *context, int errnum);
};

struct rendezvous_server_counts {
    uint64_t accepted, answered;
    uint64_t malformed; /* answered with an error of the HTTP parser */
    uint64_t refused;   /* another user's process, or an unknown one's */
    uint64_t late;      /* closed at their deadline */
    uint64_t pushed_out;
};

/* `ops` is borrowed until rendezvous_server_destroy(). */
struct rendezvous_server *rendezvous_server_create(struct loop *loop,
                                                   const struct rendezvous_server_ops *ops,
                                                   void *context, struct error *err);
/* Closes all connections without an answer and without calling `dropped`. Not to be called from
 * inside one of the ops. */
void rendezvous_server_destroy(struct rendezvous_server *server);

int rendezvous_server_port(const struct rendezvous_server *server);

/* Other limits than the default ones; 0 keeps the present value. */
void rendezvous_server_limit(struct rendezvous_server *server, int busy_ms, size_t connections);

/* How many bytes of requests and answers the node's workers may have in progress at once; at least
 * 64 MiB are allowed. */
void rendezvous_server_expect(struct rendezvous_server *server, uint64_t bytes);

/* Answers and closes; copies the part of the body that the socket does not accept at once. Ignores
 * the token of a client that has gone, or was answered. */
void rendezvous_server_reply(struct rendezvous_server *server, uint64_t token, int status,
                             const void *body, size_t length);

const struct rendezvous_server_counts *
rendezvous_server_counts(const struct rendezvous_server *server);
