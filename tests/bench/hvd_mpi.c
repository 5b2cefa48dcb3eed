/* SPDX-License-Identifier: Apache-2.0 */
/* MPI_Allreduce beside libhvd with the engine mpi: hvd_mpi ROUNDS [ROW]. */
#include <stdlib.h>

#include <mpi.h>

#include "hvd_rounds.h"
#include "job.h"

static void bare(void *context, float *data, size_t count)
{
    (void)context;
    MPI_Allreduce(MPI_IN_PLACE, data, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int threads;
    if (argc != 2 && argc != 3)
        worker_fail("usage: hvd_mpi ROUNDS [ROW]");
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads);
    struct job job = job_begin();
    (void)job;
    hvd_rounds(bare, NULL, (int)strtol(argv[1], NULL, 10), argv[2]);
    hvd_shutdown();
    MPI_Finalize();
    return 0;
}
