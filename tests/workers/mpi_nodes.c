/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi_nodes [MIB]: each rank prints "rank R of N, L of M on NAME": its place among the ranks that
 * it may share memory with, and the name of the processor. Then all sum up a vector of MIB MiB
 * (default 1), and rank 0 prints "sum ok".
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank = 0, size = 0, local = 0, peers = 0, length = 0;
    char name[MPI_MAX_PROCESSOR_NAME];
    MPI_Comm node;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &local);
    MPI_Comm_size(node, &peers);
    MPI_Get_processor_name(name, &length);
    printf("rank %d of %d, %d of %d on %s\n", rank, size, local, peers, name);

    int count = (argc > 1 ? (int)strtol(argv[1], NULL, 10) : 1) << 18;
    int *mine = malloc((size_t)count * sizeof(int));
    int *sum = malloc((size_t)count * sizeof(int));
    if (mine == NULL || sum == NULL)
        MPI_Abort(MPI_COMM_WORLD, 9);
    for (int i = 0; i < count; i++)
        mine[i] = i % 1000 + rank;
    MPI_Allreduce(mine, sum, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    int bad = 0;
    for (int i = 0; i < count; i++)
        bad += sum[i] != i % 1000 * size + size * (size - 1) / 2;
    if (rank == 0)
        printf("sum %s\n", bad == 0 ? "ok" : "BROKEN");
    MPI_Comm_free(&node);
    free(mine);
    free(sum);
    MPI_Finalize();
    return bad == 0 ? 0 : 1;
}
