/* SPDX-License-Identifier: Apache-2.0 */
/* An MPI program in which the last rank loses its way: mpi_stray [SECONDS]. It computes for that
 * long, or for ever, while the others wait for it in a barrier. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile unsigned long rounds;

__attribute__((noinline)) static void lose_way(double seconds)
{
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        for (int i = 0; i < 10000000; i++)
            rounds++;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (seconds <= 0 || (double)(now.tv_sec - begin.tv_sec) < seconds);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank = 0, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    printf("ready\n");
    fflush(stdout);
    if (rank == size - 1)
        lose_way(argc > 1 ? strtod(argv[1], NULL) : 0);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
