/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One of two programs in one job: hvdrun -np 1 collect : -np 3 sample
 *
 * Both are in the same MPI_COMM_WORLD. This one is rank 0. It adds up what the samplers send and
 * prints the sum: an approximation of pi.
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);

    int status = 0;
    if (size < 2 || rank != 0) {
        fputs("collect: start it as: hvdrun -np 1 collect : -np 3 sample\n", stderr);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    double nothing = 0, pi = 0;
    MPI_Reduce(&nothing, &pi, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    printf("%d samplers found pi = %.9f\n", size - 1, pi);
    if (fabs(pi - 3.14159265358979) > 1e-9)
        status = 1;
    MPI_Finalize();
    return status;
}
