/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only way from PMIx's thread to the loop's thread.
 *
 * PMIx calls us on its own thread, where code must not block and must not touch the agent. Each
 * call copies its arguments into a request and pushes it. The loop's thread runs the requests in
 * their order. A request that waits for an answer is parked under a number.
 */
#pragma once

#include <pthread.h>
#include <stdint.h>

struct server;
struct request;

/* One const object per operation. `run` is called once, on the loop's thread, and owns the request
 * from then on: it frees it or parks it. `drop` answers PMIx with a failure and frees it. */
struct request_kind {
    void (*run)(struct server *server, struct request *request);
    void (*drop)(struct request *request);
};

/* The first member of each operation's own struct. */
struct request {
    const struct request_kind *kind;
    struct request *next;
    uint64_t id; /* while it is parked */
};

struct bridge {
    pthread_mutex_t lock;
    struct request *first, **last;
    int event_fd;
    struct request *parked; /* the loop's thread only */
    uint64_t last_id;
};

int bridge_open(struct bridge *bridge);   /* -1 and errno */
void bridge_close(struct bridge *bridge); /* drops what remains */

void bridge_push(struct bridge *bridge, struct request *request); /* from any thread */
void bridge_run(struct bridge *bridge, struct server *server);    /* all that is queued now */

uint64_t bridge_park(struct bridge *bridge, struct request *request);
/* NULL: no request of this kind is parked under this number (it was dropped meanwhile). */
struct request *bridge_unpark(struct bridge *bridge, uint64_t id, const struct request_kind *kind);
void bridge_drop_parked(struct bridge *bridge);
