/* SPDX-License-Identifier: Apache-2.0 */
/* The store of the rendezvous, which serves the requests that agents pass on as frames (D11). */
#pragma once

#include "driver/job/job.h"
#include "rendezvous/store.h"

/* What only an elastic job needs of it: all but `reply` and `problem`. `met` and `stuck` come after
 * the callbacks of this turn of the loop, as they may use the store. The context is the job. Call
 * it before the first request; `ops` is a constant. */
void job_rendezvous_take_elastic(struct job *job, const struct rendezvous_store_ops *ops);

/* Otherwise it opens with the first request. It serves the ranks that job->plan has now. */
void job_rendezvous_open(struct job *job);
void job_rendezvous_begin(struct job *job); /* the job's new epoch */
/* The same, with the plan of the epoch before. Workers that wait at the gate wait on. */
void job_rendezvous_repair(struct job *job);

/* A rank of the present epoch has ended. */
void job_rendezvous_rank_gone(struct job *job, int rank);
/* A request that `joins` has kept, in the present epoch. */
void job_rendezvous_again(struct job *job, struct rendezvous_source source,
                          const struct rendezvous_request *request);
