/* SPDX-License-Identifier: Apache-2.0 */
/* The store of the rendezvous, which serves the requests that agents pass on as frames (D11). */
#pragma once

#include "driver/job/agent_frame.h"
#include "driver/job/job.h"
#include "rendezvous/store.h"

struct rendezvous_part;

/* Handlers of the requests that only workers of elastic jobs send (rendezvous/store.h). */
struct rendezvous_elastic {
    void (*request)(void *context, struct rendezvous_source source,
                    const struct rendezvous_request *request);
    void (*dropped)(void *context, struct rendezvous_source source);
    void *context;
};

struct rendezvous_part *rendezvous_part_create(struct job *job);
void rendezvous_part_destroy(struct rendezvous_part *part);

/* Before the first request. `elastic` is copied. */
void rendezvous_part_take_elastic(struct rendezvous_part *part,
                                  const struct rendezvous_elastic *elastic);

void rendezvous_part_begin(struct rendezvous_part *part); /* the job's new epoch */

/* KV_REQUEST, KV_DROPPED, of any epoch: a stale request gets an answer too, because its client
 * would wait for ever without one. -1: the frame cannot be decoded. */
int rendezvous_part_request(struct job *job, struct node_link *node,
                            const struct agent_frame *frame);
int rendezvous_part_dropped(struct job *job, struct node_link *node,
                            const struct agent_frame *frame);
void rendezvous_part_node_lost(struct rendezvous_part *part, const struct node_link *node);
