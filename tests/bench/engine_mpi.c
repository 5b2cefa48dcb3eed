/* SPDX-License-Identifier: Apache-2.0 */
/* MPI_Allreduce beside the engine mpi: engine_mpi ROUNDS. */
#include <stdlib.h>

#include <mpi.h>

#include "engine_rounds.h"

static void bare(void *context, float *data, size_t count)
{
    (void)context;
    MPI_Allreduce(MPI_IN_PLACE, data, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {4, 4096, 1 << 20, 64 << 20, 0};
    struct worker worker;
    int threads;
    if (argc != 2)
        worker_fail("usage: engine_mpi ROUNDS");
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads);
    worker_open(&worker);
    struct engine_comm *comm = worker_comm(&worker, 0);
    engine_rounds(&worker, comm, bare, NULL, sizes, (int)strtol(argv[1], NULL, 10));
    worker.engine->comm_destroy(comm);
    worker_close(&worker);
    MPI_Finalize();
    return 0;
}
