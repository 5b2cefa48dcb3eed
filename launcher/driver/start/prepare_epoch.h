/* SPDX-License-Identifier: Apache-2.0 */
/* Which workers of job->plan an epoch starts. */
#pragma once

#include "driver/job/job.h"
#include "model/elastic/elastic.h"

struct prepare_epoch {
    const struct elastic_member *members; /* by rank; NULL: a static job */
    int restart_count;
    bool beside_others; /* workers of earlier epochs go on; they keep MPI and the master port */
};

/* Does a worker start at this place of job->plan? */
bool prepare_concerns(const struct job *job, const struct prepare_epoch *epoch, int place);
