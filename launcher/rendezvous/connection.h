/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One client of the rendezvous server: reads its request, waits for the answer, writes it, ends.
 * Each step returns what comes next; only the server destroys connections.
 *
 * A connection is in the server's list of busy ones, except while its complete request waits for an
 * answer: then it has no deadline. The list is ordered by when each connection began to read its
 * request or to write the answer. Single bytes do not change that, so slow clients come to its
 * front.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "io/loop.h"
#include "rendezvous/http.h"

enum rendezvous_step {
    RENDEZVOUS_STEP_WAIT,      /* nothing to do until the loop calls */
    RENDEZVOUS_STEP_REQUEST,   /* the request is complete: hand it out */
    RENDEZVOUS_STEP_MALFORMED, /* call rendezvous_connection_refuse() */
    RENDEZVOUS_STEP_DROPPED,   /* the client went away while it waited */
    RENDEZVOUS_STEP_CLOSE,     /* finished, or gone before its request was complete */
};

struct rendezvous_connection_list {
    TAILQ_HEAD(, rendezvous_connection) connections; /* the next deadline first */
    size_t bytes; /* of incomplete requests and of answers that clients have not read */
};

struct rendezvous_connection {
    TAILQ_ENTRY(rendezvous_connection) place; /* in *busy */
    struct rendezvous_connection_list *busy;
    struct loop *loop;
    struct loop_fd *watch; /* NULL until the loop is needed */
    int fd;
    enum {
        RENDEZVOUS_READING,   /* the request */
        RENDEZVOUS_WAITING,   /* for the answer; a read can only bring the news that the client has
                               * gone */
        RENDEZVOUS_WRITING,   /* the rest of the answer */
        RENDEZVOUS_LINGERING, /* a refusal is written; what still comes is thrown away, since
                               * closing on unread bytes would reset the connection and take the
                               * refusal with it */
    } state;
    bool refused;
    uint64_t token;
    int64_t began_ms;           /* to read the request, or to write the answer */
    size_t bytes;               /* this one's part of busy->bytes */
    struct http_parser *parser; /* NULL once its request was handed out */
    struct buf output;
    void (*ready)(void *context, uint64_t token, int what);
    void *context;
};

/* Owns `fd`, a non-blocking socket. `ready` is called from the loop. */
struct rendezvous_connection *
rendezvous_connection_create(struct loop *loop, int fd, uint64_t token,
                             struct rendezvous_connection_list *busy,
                             void (*ready)(void *context, uint64_t token, int what), void *context);
void rendezvous_connection_destroy(struct rendezvous_connection *connection); /* accepts NULL */

enum rendezvous_step rendezvous_connection_ready(struct rendezvous_connection *connection,
                                                 int what);
/* The answer did not come at once: from now on the loop notices when the client goes. */
void rendezvous_connection_hold(struct rendezvous_connection *connection);
/* For a connection that waits; copies the part of the body that is not sent at once. */
enum rendezvous_step rendezvous_connection_answer(struct rendezvous_connection *connection,
                                                  int status, const void *body, size_t length);
enum rendezvous_step rendezvous_connection_refuse(struct rendezvous_connection *connection);
