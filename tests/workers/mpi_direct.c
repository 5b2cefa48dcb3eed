/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An MPI program in which each rank talks to each other one, so that it needs the data of all.
 *
 * mpi_direct: MPI_Alltoall over all ranks. mpi_direct N: they spawn N children first, and then it
 * is over the merged communicator. Each rank prints "all N ok", or what is wrong.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int exchange(MPI_Comm all)
{
    int rank = 0, size = 0, wrong = 0;
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &size);
    int *out = calloc((size_t)size, sizeof(*out)), *in = calloc((size_t)size, sizeof(*in));
    for (int i = 0; i < size; i++)
        out[i] = rank * 1000 + i;
    MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, all);
    for (int i = 0; i < size; i++)
        wrong += in[i] != i * 1000 + rank;
    printf(wrong == 0 ? "all %d ok\n" : "%d with wrong numbers\n", size);
    fflush(stdout);
    free(out);
    free(in);
    return wrong;
}

int main(int argc, char **argv)
{
    MPI_Comm other = MPI_COMM_NULL, all = MPI_COMM_WORLD;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&other);
    int is_child = other != MPI_COMM_NULL;
    if (!is_child && argc > 1)
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, (int)strtol(argv[1], NULL, 10), MPI_INFO_NULL, 0,
                       MPI_COMM_WORLD, &other, MPI_ERRCODES_IGNORE);
    if (other != MPI_COMM_NULL)
        MPI_Intercomm_merge(other, is_child, &all);
    int wrong = exchange(all);
    if (other != MPI_COMM_NULL)
        MPI_Comm_disconnect(&other);
    MPI_Finalize();
    return wrong;
}
