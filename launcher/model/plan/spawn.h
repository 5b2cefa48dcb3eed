/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks that a running job adds (MPI_Comm_spawn): where they run, and the plan of the job with
 * them. Pure.
 *
 * Rule: app after app, each rank takes the first free slot of the first host that its app allows. A
 * slot is free if no rank that runs has it. With oversubscription, ranks for which no slot is free
 * go to the host with the fewest ranks for each slot.
 */
#pragma once

#include "model/plan/plan.h"

struct spawn_app {
    int np;
    const char *hosts; /* "a,b:2": at most 2 ranks of this app on b; NULL or "": any host. A host
                          that no node has as its name may be the host name of some. */
};

struct spawn_request {
    const struct plan *whole;     /* of the job so far */
    const bool *ended;            /* by rank of it */
    const int *slots;             /* by node */
    const char *const *hostnames; /* by node, as its machine calls itself */
    const struct spawn_app *apps;
    int app_count;
    bool oversubscribe;
};

/* The plan of the new ranks alone, which count from 0, on all nodes of the job in their order. NULL
 * and `err`: STATUS_NO_SLOTS if too few slots are free, STATUS_USAGE if the request makes no sense.
 * The caller owns it. */
struct plan *spawn_plan(const struct spawn_request *request, struct error *err);

/* The plan of the job with the ranks of `added` behind its own. `first_app` is the number of the
 * first app of `added` there. The caller owns it. */
struct plan *spawn_join(const struct plan *whole, const struct plan *added, int first_app);
