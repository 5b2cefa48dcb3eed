/* SPDX-License-Identifier: Apache-2.0 */
/* An MPI program that works: each rank prints "rank R of N sum S", S being the sum of all ranks.
 * mpi_hello [COUNT]: COUNT sums one after the other (default 1). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank = 0;
    int size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    long count = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
    long sum = 0;
    for (long i = 0; i < count; i++) {
        long mine = rank;
        MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    }
    printf("rank %d of %d sum %ld\n", rank, size, sum);
    MPI_Finalize();
    return 0;
}
