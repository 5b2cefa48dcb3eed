/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi_publish [connect]: rank 0 publishes a port name under a service name, all others look it up
 * and print "rank R found the port", then it is unpublished and the last rank must no longer
 * find it ("rank R gone"). With `connect`, rank 1 also connects to rank 0 through that port and
 * they exchange a number.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static const char service[] = "hvdrun-test-service";

static void meet(int rank, const char *port)
{
    MPI_Comm other;
    int mine = rank + 40;
    int theirs = -1;
    if (rank == 0)
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
    else
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
    MPI_Sendrecv(&mine, 1, MPI_INT, 0, 0, &theirs, 1, MPI_INT, 0, 0, other, MPI_STATUS_IGNORE);
    printf("rank %d met %d\n", rank, theirs);
    MPI_Comm_disconnect(&other);
}

int main(int argc, char **argv)
{
    char port[MPI_MAX_PORT_NAME] = "";
    char found[MPI_MAX_PORT_NAME] = "";
    int rank = 0;
    int size = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int connect = argc > 1 && strcmp(argv[1], "connect") == 0;
    if (rank == 0) {
        /* Not every MPI can open ports (MPICH over UCX cannot); any word can be published. */
        snprintf(port, sizeof(port), "port-of-rank-0$tag#1$");
        if (connect)
            MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Publish_name(service, MPI_INFO_NULL, port);
    }
    MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank > 0) {
        MPI_Lookup_name(service, MPI_INFO_NULL, found);
        printf("rank %d found %s\n", rank, strcmp(found, port) == 0 ? "the port" : "another port");
    }
    if (connect && rank < 2)
        meet(rank, rank == 0 ? port : found);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Unpublish_name(service, MPI_INFO_NULL, port);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == size - 1) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        int error = MPI_Lookup_name(service, MPI_INFO_NULL, found);
        printf("rank %d %s\n", rank, error == MPI_SUCCESS ? "still found" : "gone");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (connect && rank == 0)
        MPI_Close_port(port);
    MPI_Finalize();
    return 0;
}
