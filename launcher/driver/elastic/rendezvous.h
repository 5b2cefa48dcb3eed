/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The elastic part of the rendezvous: what its store hears from workers that come and go.
 *
 * A worker that rejoins sends `PUT worker_addresses/HOST:LOCAL_RANK`, which registers it, and `GET
 * rank_and_size/HOST:LOCAL_RANK`, which asks for its next place, and is held until the core
 * answers. The worker that has rank 0 is notified of changes (docs/elastic.md).
 *
 * The first request of a newcomer (model/elastic/newcomers.h) is kept until the epoch begins in
 * which it has its place. Its client waits without a limit.
 */
#pragma once

#include "driver/elastic/hub.h"
#include "driver/elastic/story.h"

struct elastic_rendezvous;

/* Both are borrowed. The rendezvous of the job calls it from now on. */
struct elastic_rendezvous *elastic_rendezvous_create(struct elastic_hub *hub,
                                                     struct elastic_story *story);
void elastic_rendezvous_destroy(struct elastic_rendezvous *rendezvous); /* accepts NULL */

/* The answer to a worker that rejoins. `member` NULL: it is no longer part of the job. */
void elastic_rendezvous_answer(struct elastic_rendezvous *rendezvous, uint64_t request,
                               const struct elastic_plan *plan,
                               const struct elastic_member *member);
/* The hosts changed: the agent on the worker's node notifies the worker. */
void elastic_rendezvous_notify(struct elastic_rendezvous *rendezvous, int seat);
/* The epoch of elastic_plan() has begun: the requests of the newcomers that joined go on. */
void elastic_rendezvous_admit(struct elastic_rendezvous *rendezvous);

/* What the worker of the seat, or all workers of the node, said is forgotten, and others wait for
 * their ranks no more. Call it before an event that may begin the next epoch. */
void elastic_rendezvous_exited(struct elastic_rendezvous *rendezvous, int seat);
void elastic_rendezvous_node_lost(struct elastic_rendezvous *rendezvous,
                                  const struct node_link *node);
