/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rendezvous store, in the driver: scopes of keys with opaque blobs. Requests come in, answers
 * go out through one callback; time is a parameter. Pure.
 *
 * Meaning of the methods
 *   PUT     stores the body (of any length, 0 too) in place of an earlier one. Answers 200, and
 *           every GET that waits for the key. The PUT of rank_<r> in the scope global, the first
 *           request of every rendezvous, is answered when all ranks have sent theirs (held.h).
 *   GET     200 and the blob. A missing key that is a number is a rank's address: the GET waits for
 *           it, up to RENDEZVOUS_HOLD_MS, then 404. Any other missing key is 404 at once.
 *   DELETE  always 200. In the plan's scopes (global, local_<host>, cross_<local rank>) it means
 *           "this rank is done here": the key stays readable. When as many keys are done as the
 *           scope has members, the whole scope is emptied. In any other scope the key is removed.
 *
 * When a rank has ended, the others cannot complete a scope of the plan in which it was not done.
 * They are stuck: in Gloo's connect, which gives up after several time-outs, or at the gate. The
 * same holds for the scopes of a process set that has all ranks, as the first one of Horovod does.
 * In a static job nobody comes in its place, so the gate opens, and Gloo gives up.
 *
 * Each scope counts on its own, and each key once, however often its DELETE is repeated. A DELETE
 * of a missing key does not count. So one that is repeated after the scope was emptied cannot
 * disturb the next round.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/plan/plan.h"
#include "rendezvous/held.h"
#include "rendezvous/http.h"

enum { RENDEZVOUS_HOLD_MS = 1000 };

struct rendezvous_store_ops {
    /* The answer to one request; `body` is borrowed until this returns. Must not call the store. */
    void (*reply)(void *context, struct rendezvous_source source, int status, const void *body,
                  size_t length);

    /* A warning of one line. Each at most once per epoch. */
    void (*problem)(void *context, const char *text);

    /* All ranks of the epoch are done in all scopes of the plan. At most once per epoch; NULL. */
    void (*met)(void *context);
    /* A rank of the epoch that waits for one that has ended: at the gate, where it can wait for
     * another worker, or in a scope, which it cannot complete. More than once perhaps. Must not
     * call the store. NULL in a static job: there the gate opens. */
    void (*stuck)(void *context, int rank, bool at_gate);

    /* The elastic part, both NULL in a static job. `elastic` gets every request to rank_and_size
     * and worker_addresses, of any epoch, and answers it by `reply` at any time.
     * `elastic_dropped` reports that such a client has gone. In a static job worker_addresses is an
     * ordinary scope, and rank_and_size is 501: a worker would take a 404 for a rank. */
    void (*elastic)(void *context, struct rendezvous_source source,
                    const struct rendezvous_request *request);
    void (*elastic_dropped)(void *context, struct rendezvous_source source);
    /* True: a newcomer has sent this, whose time has not come; `elastic_joins` has copied it, and
     * sends it again with rendezvous_store_request() when the newcomer joins. It is asked for the
     * first requests of a rendezvous. */
    bool (*elastic_joins)(void *context, struct rendezvous_source source,
                          const struct rendezvous_request *request);
};

struct rendezvous_store;

/* `ops` is borrowed until rendezvous_store_destroy(). Requests before the first begin() belong to
 * epoch 0 and to a plan without members. A memory limit of 0: what the ranks of each plan can need.
 */
struct rendezvous_store *rendezvous_store_create(const struct rendezvous_store_ops *ops,
                                                 void *context, uint64_t memory_limit);
void rendezvous_store_destroy(struct rendezvous_store *store); /* sends no answers */

/* A new epoch: empties the store, answers 404 to every GET that waits, and counts by this plan. */
void rendezvous_store_begin(struct rendezvous_store *store, uint32_t epoch,
                            const struct plan *plan);

/* A new epoch with the same plan: other workers come for the ranks that have gone. The ranks at the
 * gate wait on. */
void rendezvous_store_repair(struct rendezvous_store *store, uint32_t epoch);

/* A request that an agent sent in `epoch`. A request of another epoch than the store's is answered
 * with 404, never dropped. The client takes that for "stored" or "not there yet" and goes on;
 * without an answer it would hang forever. */
void rendezvous_store_request(struct rendezvous_store *store, int64_t now_ms, uint32_t epoch,
                              struct rendezvous_source source,
                              const struct rendezvous_request *request);

/* A rank of the present epoch has ended. */
void rendezvous_store_rank_gone(struct rendezvous_store *store, int rank);

/* The client, or a whole node, has gone: its answers are not needed. */
void rendezvous_store_drop(struct rendezvous_store *store, struct rendezvous_source source);
void rendezvous_store_drop_node(struct rendezvous_store *store, uint32_t node);

/* When rendezvous_store_expire() is to be called next; -1: nobody waits. */
int64_t rendezvous_store_next_deadline(const struct rendezvous_store *store);
void rendezvous_store_expire(struct rendezvous_store *store, int64_t now_ms);

uint64_t rendezvous_store_memory(const struct rendezvous_store *store); /* bytes accounted for */
