/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests of workers that rejoin. `PUT worker_addresses/HOST:LOCAL_RANK` registers a worker.
 * `GET rank_and_size/HOST:LOCAL_RANK` asks for its next place, and is held until the core answers.
 * Also the notification of the worker that has rank 0 (docs/elastic.md).
 */
#pragma once

#include "driver/elastic/hub.h"
#include "rendezvous/store.h"

struct elastic_rejoin;

struct elastic_rejoin *elastic_rejoin_create(struct elastic_hub *hub);
void elastic_rejoin_destroy(struct elastic_rejoin *rejoin); /* accepts NULL */

/* As struct rendezvous_elastic has them. */
void elastic_rejoin_request(struct elastic_rejoin *rejoin, struct rendezvous_source source,
                            const struct rendezvous_request *request);
void elastic_rejoin_dropped(struct elastic_rejoin *rejoin, struct rendezvous_source source);

void elastic_rejoin_node_lost(struct elastic_rejoin *rejoin, const struct node_link *node);

/* `member` NULL: the worker is no longer part of the job. */
void elastic_rejoin_answer(struct elastic_rejoin *rejoin, uint64_t request,
                           const struct elastic_plan *plan, const struct elastic_member *member);

/* The hosts changed: the agent on the worker's node notifies the worker. */
void elastic_rejoin_notify(struct elastic_rejoin *rejoin, int seat);

void elastic_rejoin_forget(struct elastic_rejoin *rejoin, int seat); /* its worker is gone */
