/* SPDX-License-Identifier: Apache-2.0 */
/* The store of the rendezvous, which serves the requests that agents pass on as frames (D11). */
#pragma once

#include "driver/job/job.h"
#include "rendezvous/store.h"

struct job_rendezvous;

/* What only an elastic job needs of it; see struct rendezvous_store_ops. All but `joins` may use
 * the store. */
struct rendezvous_elastic {
    void (*request)(void *context, struct rendezvous_source source,
                    const struct rendezvous_request *request);
    void (*dropped)(void *context, struct rendezvous_source source);
    bool (*joins)(void *context, struct rendezvous_source source,
                  const struct rendezvous_request *request);
    void (*met)(void *context);
    void (*stuck)(void *context, int rank, bool at_gate);
    void *context;
};

/* Before the first request. `elastic` is copied. */
void job_rendezvous_take_elastic(struct job_rendezvous *part,
                                 const struct rendezvous_elastic *elastic);

/* Otherwise it opens with the first request. It serves the ranks that job->plan has now. */
void job_rendezvous_open(struct job_rendezvous *part);
void job_rendezvous_begin(struct job_rendezvous *part); /* the job's new epoch */
/* The same, with the plan of the epoch before. Workers that wait at the gate wait on. */
void job_rendezvous_repair(struct job_rendezvous *part);

/* A rank of the present epoch has ended. */
void job_rendezvous_rank_gone(struct job_rendezvous *part, int rank);
/* A request that `joins` has kept, in the present epoch. */
void job_rendezvous_again(struct job_rendezvous *part, struct rendezvous_source source,
                          const struct rendezvous_request *request);
