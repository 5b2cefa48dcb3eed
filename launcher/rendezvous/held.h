/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of a rendezvous that wait for others: for a key, or at the gate. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "base/map.h"

/* The source of a request: a node of the job and its agent's number for the request. Unique among
 * the requests that are not answered yet. */
struct rendezvous_source {
    uint64_t node, id; /* no padding: these bytes are a hash key */
};

/*
 * GETs that wait for their key, each with its source and its deadline.
 *
 * All of them wait equally long, so the order of arrival is the order of the deadlines.
 */
struct rendezvous_held {
    TAILQ_HEAD(, waiter) waiters;
    struct map by_path;   /* the first waiter of each key */
    struct map by_source; /* all waiters */
};

void rendezvous_held_init(struct rendezvous_held *held);
void rendezvous_held_clear(struct rendezvous_held *held);
void rendezvous_held_add(struct rendezvous_held *held, const char *scope, const char *key,
                         struct rendezvous_source source, int64_t deadline_ms);

/* The client has gone. False: no request of this source waits here. */
bool rendezvous_held_drop(struct rendezvous_held *held, struct rendezvous_source source);
void rendezvous_held_drop_node(struct rendezvous_held *held, uint32_t node);

/* Each call removes one waiting request and returns its source; false: there is none. */
bool rendezvous_held_take(struct rendezvous_held *held, const char *scope, const char *key,
                          struct rendezvous_source *source);
bool rendezvous_held_take_due(struct rendezvous_held *held, int64_t now_ms,
                              struct rendezvous_source *source);
int64_t rendezvous_held_deadline(const struct rendezvous_held *held); /* the first; -1: none */

/*
 * The gate of a rendezvous: it holds the first request of every rank until all ranks have sent
 * theirs. Behind it each rank connects to all others, and gives up when one takes longer than
 * HOROVOD_GLOO_TIMEOUT_SECONDS. Before it, a client waits for its answer without a limit. So no
 * rank fails because another one is still busy with its imports.
 *
 * The gate closes again when it has opened: a program may shut down and begin anew. An all-zero
 * struct holds nobody.
 */
struct rendezvous_gate {
    struct rendezvous_place {
        bool here;
        struct rendezvous_source source;
    } * places; /* by rank */
    int ranks, held;
    int64_t deadline_ms;
};

/* The gate opens at this time after the first rank has come, whichever ranks are missing. So a rank
 * that never comes does not hold the others for ever. */
enum { RENDEZVOUS_GATE_MS = 600 * 1000 };

/* Forgets whom it holds, and waits for ranks 0 to `ranks` - 1; 0: it holds nobody. */
void rendezvous_gate_reset(struct rendezvous_gate *gate, int ranks);

/* A rank below `ranks`, which the gate does not hold, has come. True: all are there. */
bool rendezvous_gate_come(struct rendezvous_gate *gate, int rank, struct rendezvous_source source,
                          int64_t now_ms);

/* The gate forgets the rank: it is let in, has ended, or comes again. False: it was not held. */
bool rendezvous_gate_leave(struct rendezvous_gate *gate, int rank,
                           struct rendezvous_source *source);
int64_t rendezvous_gate_deadline(const struct rendezvous_gate *gate); /* -1: it holds nobody */
/* "3, 5 and 12 more": the ranks that have not come. */
void rendezvous_gate_missing(const struct rendezvous_gate *gate, struct buf *out);
