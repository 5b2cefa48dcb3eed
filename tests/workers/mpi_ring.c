/* SPDX-License-Identifier: Apache-2.0 */
/* mpi_ring [BYTES] [ROUNDS]: a message travels round all ranks; rank 0 prints "ring of N ok" when
 * every byte came back. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank = 0;
    int size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int bytes = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 4096;
    int rounds = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 3;
    char *message = malloc((size_t)bytes + 1);
    if (message == NULL)
        MPI_Abort(MPI_COMM_WORLD, 9);
    int to = (rank + 1) % size;
    int from = (rank + size - 1) % size;
    int bad = 0;
    for (int round = 0; round < rounds; round++) {
        if (rank == 0) {
            memset(message, 'a' + round % 26, (size_t)bytes);
            MPI_Request request;
            MPI_Isend(message, bytes, MPI_CHAR, to, round, MPI_COMM_WORLD, &request);
            char *back = calloc((size_t)bytes + 1, 1);
            if (back == NULL)
                MPI_Abort(MPI_COMM_WORLD, 9);
            MPI_Recv(back, bytes, MPI_CHAR, from, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            bad += memcmp(message, back, (size_t)bytes) != 0;
            free(back);
        } else {
            MPI_Recv(message, bytes, MPI_CHAR, from, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(message, bytes, MPI_CHAR, to, round, MPI_COMM_WORLD);
        }
    }
    if (rank == 0)
        printf("ring of %d %s\n", size, bad == 0 ? "ok" : "BROKEN");
    free(message);
    MPI_Finalize();
    return bad == 0 ? 0 : 1;
}
