/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_speed [ROUNDS]: how fast MPI is once it runs. Rank 0 prints "speed" and four medians in
 * microseconds. Two are half a ping-pong between ranks 0 and 1, with 8 bytes and with 1 MiB. Two
 * are a sum over all ranks, of 8 bytes and of 1 MiB. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LARGE = 1 << 20, ROUNDS_MAX = 100000 };

static int rank;
static double *source, *target;

static void ping_pong(int bytes)
{
    if (rank > 1)
        return;
    if (rank == 1)
        MPI_Recv(target, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(source, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Recv(target, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void sum(int bytes)
{
    MPI_Allreduce(source, target, bytes / (int)sizeof(double), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static int compare(const void *a, const void *b)
{
    double one = *(const double *)a, two = *(const double *)b;
    return (one > two) - (one < two);
}

static double median_us(void (*work)(int bytes), int bytes, int rounds)
{
    static double times[ROUNDS_MAX];
    for (int i = 0; i < rounds / 10 + 1; i++)
        work(bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < rounds; i++) {
        double begin = MPI_Wtime();
        work(bytes);
        times[i] = MPI_Wtime() - begin;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    qsort(times, (size_t)rounds, sizeof(*times), compare);
    return times[rounds / 2] * 1e6;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 1000;
    if (rounds < 10 || rounds > ROUNDS_MAX)
        return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    source = calloc(1, LARGE);
    target = calloc(1, LARGE);
    if (source == NULL || target == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    double short_trip = median_us(ping_pong, 8, rounds) / 2;
    double long_trip = median_us(ping_pong, LARGE, rounds / 10) / 2;
    double short_sum = median_us(sum, 8, rounds);
    double long_sum = median_us(sum, LARGE, rounds / 10);
    if (rank == 0)
        printf("speed %.3f %.1f %.3f %.1f\n", short_trip, long_trip, short_sum, long_sum);
    free(source);
    free(target);
    MPI_Finalize();
    return 0;
}
