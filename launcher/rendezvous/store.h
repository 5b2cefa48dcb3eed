/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rendezvous store, in the driver: scopes of keys with opaque blobs. Requests in, answers out
 * through one callback; time is a parameter. Pure.
 *
 * Meaning of the methods
 *   PUT     stores the body (of any length, 0 too), replaces what was there, answers 200 and every
 *           GET that waits for the key.
 *   GET     200 and the blob. Missing: a rank's address (a key that is a number) is waited for, up
 *           to RENDEZVOUS_HOLD_MS, then 404; any other key is 404 at once.
 *   DELETE  always 200. In the plan's scopes (global, local_<host>, cross_<local rank>) it says
 *           "this rank is done here": the key stays readable, and when as many keys as the scope
 *           has members are done, the whole scope is emptied. In any other scope the key goes.
 *
 * A scope counts for itself, and each key once, however often its DELETE is repeated; a DELETE of a
 * key that is not there counts nothing, so one that is repeated after the scope was emptied cannot
 * disturb the next round.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/plan/plan.h"
#include "rendezvous/held.h"
#include "rendezvous/request.h"

enum { RENDEZVOUS_HOLD_MS = 1000 };

struct rendezvous_store_ops {
    /* The answer to one request; `body` is borrowed until this returns. Must not call the store. */
    void (*reply)(void *context, struct rendezvous_source source, int status, const void *body,
                  size_t length);

    /* Worth a warning: one line. At most once per epoch. */
    void (*problem)(void *context, const char *text);

    /* The elastic part, both NULL in a static job. `elastic` gets every request to rank_and_size
     * and worker_addresses, of any epoch, and answers it by `reply` whenever it likes;
     * `elastic_dropped` tells that such an asker has gone. In a static job worker_addresses is an
     * ordinary scope, and rank_and_size is 501 (404 would make a worker take garbage for a rank).
     */
    void (*elastic)(void *context, struct rendezvous_source source,
                    const struct rendezvous_request *request);
    void (*elastic_dropped)(void *context, struct rendezvous_source source);
};

struct rendezvous_store;

/* `ops` is borrowed for the life of the store. Requests before the first begin() belong to epoch 0
 * and to a plan without members. A memory limit of 0: what the ranks of each plan can need. */
struct rendezvous_store *rendezvous_store_create(const struct rendezvous_store_ops *ops,
                                                 void *context, uint64_t memory_limit);
void rendezvous_store_destroy(struct rendezvous_store *store); /* answers nobody */

/* A new epoch: empties the store, answers 404 to every GET that waits, and counts by this plan. */
void rendezvous_store_begin(struct rendezvous_store *store, uint32_t epoch,
                            const struct plan *plan);

/* A request that an agent sent in `epoch`. One of another epoch than the store's is answered 404,
 * never dropped: the client takes it for "stored" or "not there yet" and goes on, where silence
 * would hang it for ever. */
void rendezvous_store_request(struct rendezvous_store *store, int64_t now_ms, uint32_t epoch,
                              struct rendezvous_source source,
                              const struct rendezvous_request *request);

/* The asker has gone, or a whole node has: nobody is there to take the answers. */
void rendezvous_store_drop(struct rendezvous_store *store, struct rendezvous_source source);
void rendezvous_store_drop_node(struct rendezvous_store *store, uint32_t node);

/* When rendezvous_store_expire() is to be called next; -1: no GET waits. */
int64_t rendezvous_store_next_deadline(const struct rendezvous_store *store);
void rendezvous_store_expire(struct rendezvous_store *store, int64_t now_ms);

uint64_t rendezvous_store_memory(const struct rendezvous_store *store); /* bytes accounted for */
