/* SPDX-License-Identifier: Apache-2.0 */
/* An allocation as all files of this folder share it. Pure. */
#pragma once

#include <stdint.h>

#include "model/hosts/hosts.h"

enum allocation_kind {
    ALLOCATION_NONE,
    ALLOCATION_SLURM,
    ALLOCATION_PBS,
    ALLOCATION_LSF,
    ALLOCATION_SGE,
    ALLOCATION_KUBERNETES,
};

struct allocation {
    enum allocation_kind kind;
    char *job_id;           /* NULL: not said */
    char *here;             /* the scheduler's name of this machine (SLURMD_NODENAME); NULL: not
                               said, as on a login host */
    struct host_list hosts; /* in the scheduler's order */
    int np;                 /* tasks that were asked for; 0: not said */
    int restart_count; /* how often the scheduler has requeued the job; 0: never, or not said */
    int64_t end_s;     /* when its time is over, seconds since 1970; 0: not said */
};
