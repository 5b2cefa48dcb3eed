/* SPDX-License-Identifier: Apache-2.0 */
/* An MPI program that asks for two more processes.
 * mpi_spawn fatal|returned|alone: a refusal ends it; it goes on after a refusal; only the last rank
 * asks, for itself. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const char *how = argc > 1 ? argv[1] : "fatal";
    int rank = 0;
    int size = 0;
    int problems[2] = {0, 0};
    MPI_Comm children = MPI_COMM_NULL;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm asker = strcmp(how, "alone") == 0 ? MPI_COMM_SELF : MPI_COMM_WORLD;
    if (strcmp(how, "fatal") != 0)
        MPI_Comm_set_errhandler(asker, MPI_ERRORS_RETURN);
    if (asker == MPI_COMM_WORLD || rank == size - 1)
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, asker, &children, problems);
    printf("rank %d goes on\n", rank);
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
