/* SPDX-License-Identifier: Apache-2.0 */
/* An MPI program in which the last rank loses its way: mpi_stray [SECONDS | sleep | other | leave].
 * It computes for that long, or for ever, while the others wait for it in a barrier. Or it sleeps;
 * or it calls another operation than the others; or it ends. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long rounds;

__attribute__((noinline)) static void lose_way(double seconds, int sleeps)
{
    struct timespec begin, now;
    while (sleeps)
        sleep(1000);
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
    const char *way = argc > 1 ? argv[1] : "0";
    double one = 1, sum;
    int last = rank == size - 1, other = strcmp(way, "other") == 0;
    if (last && strcmp(way, "leave") == 0)
        _exit(0);
    if (last && !other)
        lose_way(strtod(way, NULL), strcmp(way, "sleep") == 0);
    if (last && other)
        MPI_Bcast(&one, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    else if (other)
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
