/* SPDX-License-Identifier: Apache-2.0 */
/* Which rank the others of a job that hangs wait for, from all that the driver knows. */
#pragma once

#include "driver/job/job.h"
#include "features/hang/culprit.h"
#include "features/hang/hang.h"
#include "features/hang/hang_facts_driver.h"
#include "features/hang/stall_lines.h"
#include "features/stacks/look_driver.h"

/* What libraries of the ranks say, beside libhvd, for which the job has a place. */
struct hang_facts {
    const struct ras_facts *ras;      /* NCCL */
    const struct stall_lines *stalls; /* Horovod */
};

/* Appends what features/hang/culprit.h says, and returns the same. */
struct culprit hang_culprit(const struct job *job, const struct hang *hang,
                            const struct hang_facts *facts, const struct ask *look,
                            struct buf *out);
