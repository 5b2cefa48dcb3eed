/* SPDX-License-Identifier: Apache-2.0 */
/* The workers of a plan that an epoch starts. */
#pragma once

#include "driver/job/job.h"
#include "model/elastic/elastic.h"
#include "model/settings/words.h"

/* What a rank has spawned (start/worlds.h). */
struct world {
    const struct app_list *apps;
    enum mpi_kind mpi;
    uint32_t parent_epoch;
    int parent_rank; /* in that world */
    int first_seat;
    const struct strv *preput; /* for PMI-1: a key, its value, ... */
};

struct prepare_epoch {
    uint32_t number;
    const struct plan *plan;
    struct node_link *const *places;      /* by the plan's number of a node */
    const struct elastic_member *members; /* by rank; NULL: a static job */
    int restart_count;
    const struct world *world; /* NULL: the workers are not a world that a rank has spawned */
    bool beside_others; /* workers of earlier epochs continue; they keep MPI and the master port */
};

/* Whether a worker starts at this place of the plan. */
bool prepare_concerns(const struct prepare_epoch *epoch, int place);
