/* SPDX-License-Identifier: Apache-2.0 */
/* The workers of a plan that an epoch starts. */
#pragma once

#include "driver/job/job.h"
#include "model/elastic/elastic.h"

struct prepare_epoch {
    uint32_t number;
    const struct plan *plan;
    struct node_link *const *places;      /* by the plan's number of a node */
    const struct elastic_member *members; /* by rank; NULL: a static job */
    int restart_count;
    bool beside_others; /* workers of earlier epochs continue; they keep MPI and the master port */
};

/* Whether a worker starts at this place of the plan. */
bool prepare_concerns(const struct prepare_epoch *epoch, int place);
