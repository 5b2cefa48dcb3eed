/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first request of each newcomer (model/elastic/newcomers.h) to the rendezvous. It is kept
 * until the epoch begins in which the newcomer has its place; its client waits without a limit.
 */
#pragma once

#include "driver/elastic/hub.h"
#include "rendezvous/store.h"

struct elastic_newcomers_part;

struct elastic_newcomers_part *elastic_newcomers_create(struct elastic_hub *hub);
void elastic_newcomers_destroy(struct elastic_newcomers_part *part); /* accepts NULL */

/* For rendezvous_elastic; the context is the part. */
bool elastic_newcomers_joins(void *context, struct rendezvous_source source,
                             const struct rendezvous_request *request);

/* The epoch of elastic_plan() has begun: the requests of those that have joined go on. */
void elastic_newcomers_admit(struct elastic_newcomers_part *part);
void elastic_newcomers_drop(struct elastic_newcomers_part *part, int seat); /* its worker is gone */
void elastic_newcomers_drop_node(struct elastic_newcomers_part *part, const struct node_link *node);
