/* SPDX-License-Identifier: Apache-2.0 */
/* Prints where each rank is. */
#include <stdio.h>

#include "job.h"

int main(void)
{
    struct job job = job_begin();
    printf("rank %d of %d: local %d of %d, cross %d of %d, %s\n", hvd_rank(), hvd_size(),
           hvd_local_rank(), hvd_local_size(), hvd_cross_rank(), hvd_cross_size(),
           hvd_is_homogeneous() ? "homogeneous" : "not homogeneous");
    job_end(&job);
    return 0;
}
