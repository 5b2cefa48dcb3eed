/* SPDX-License-Identifier: Apache-2.0 */
/* The store of the rendezvous, which serves the requests that agents pass on as frames (D11). */
#pragma once

#include "driver/job/agent_frame.h"
#include "driver/job/job.h"
#include "rendezvous/store.h"

struct job_rendezvous;

/* Handlers of the requests that only workers of elastic jobs send (rendezvous/store.h). */
struct rendezvous_elastic {
    void (*request)(void *context, struct rendezvous_source source,
                    const struct rendezvous_request *request);
    void (*dropped)(void *context, struct rendezvous_source source);
    void *context;
};

struct job_rendezvous *job_rendezvous_create(struct job *job);
void job_rendezvous_destroy(struct job_rendezvous *part);

/* Before the first request. `elastic` is copied. */
void job_rendezvous_take_elastic(struct job_rendezvous *part,
                                 const struct rendezvous_elastic *elastic);

void job_rendezvous_begin(struct job_rendezvous *part); /* the job's new epoch */

/* KV_REQUEST, KV_DROPPED, of any epoch: a stale request gets an answer too, because its client
 * would wait for ever without one. -1: the frame cannot be decoded. */
int job_rendezvous_request(struct job *job, struct node_link *node,
                           const struct agent_frame *frame);
int job_rendezvous_dropped(struct job *job, struct node_link *node,
                           const struct agent_frame *frame);
void job_rendezvous_node_lost(struct job_rendezvous *part, const struct node_link *node);
