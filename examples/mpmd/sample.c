/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other program of the job (see collect.c). It integrates its share of 4 / (1 + x^2) over
 * [0, 1] and sends the result to rank 0. Ranks 1 to size - 1 are samplers.
 */
#include <mpi.h>
#include <stdio.h>

#define STEPS 1000000

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0) {
        fputs("sample: start it as: hvdrun -np 1 collect : -np 3 sample\n", stderr);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    double sum = 0;
    for (int i = rank - 1; i < STEPS; i += size - 1) {
        double x = (i + 0.5) / STEPS;
        sum += 4 / (1 + x * x) / STEPS;
    }
    MPI_Reduce(&sum, NULL, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
