/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_abort RANK CODE [TEXT]: that rank prints a line and calls MPI_Abort with the code, the others
 * wait in a barrier. All have printed the text before, and that rank prints it once more. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    const char *text = argc == 4 ? argv[3] : "";
    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: mpi_abort RANK CODE [TEXT]\n");
        return 2;
    }
    MPI_Init(&argc, &argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("%s", text);
    MPI_Barrier(MPI_COMM_WORLD); /* over UCX, a rank that connects to one that ends fails too */
    if (rank != (int)strtol(argv[1], NULL, 10)) {
        MPI_Barrier(MPI_COMM_WORLD);
    } else {
        printf("rank %d aborts\n%s", rank, text);
        MPI_Abort(MPI_COMM_WORLD, (int)strtol(argv[2], NULL, 10));
    }
    MPI_Finalize();
    return 0;
}
