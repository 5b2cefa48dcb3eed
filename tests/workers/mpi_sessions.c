/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Communicators without MPI_COMM_WORLD, which MPI 4 has: from a session and its process sets, also
 * some of a part of the ranks, and from a group of an MPI that is initialized as ever. Prints
 * "rank R of N sum S", where the sum is that of all ranks. With "kept", a session is open from the
 * beginning to the end, while others come and go.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call)                                                       \
    do {                                                                  \
        int said = (call);                                                \
        if (said != MPI_SUCCESS) {                                        \
            printf("failed at line %d: %s: %d\n", __LINE__, #call, said); \
            exit(1);                                                      \
        }                                                                 \
    } while (0)

static int sum_of_ranks(MPI_Comm comm)
{
    int rank = 0, sum = 0;
    CHECK(MPI_Comm_rank(comm, &rank));
    CHECK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
    return sum;
}

/* One whole life of a session: a communicator of all, and one of the even or odd ranks. */
static void try_session(int *rank, int *size, int *sum)
{
    MPI_Session session;
    MPI_Group all, part;
    MPI_Comm comm, half;
    CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    CHECK(MPI_Group_from_session_pset(session, "mpi://WORLD", &all));
    CHECK(MPI_Comm_create_from_group(all, "hvdrun.test.all", MPI_INFO_NULL, MPI_ERRORS_RETURN,
                                     &comm));
    CHECK(MPI_Comm_rank(comm, rank));
    CHECK(MPI_Comm_size(comm, size));
    *sum = sum_of_ranks(comm);
    int range[1][3] = {{*rank % 2, *size - 1, 2}};
    CHECK(MPI_Group_range_incl(all, 1, range, &part));
    CHECK(MPI_Comm_create_from_group(part, *rank % 2 ? "hvdrun.test.odd" : "hvdrun.test.even",
                                     MPI_INFO_NULL, MPI_ERRORS_RETURN, &half));
    int ranks = 0;
    CHECK(MPI_Comm_size(half, &ranks));
    if (sum_of_ranks(half) != ranks * (ranks - 1) / 2)
        printf("rank %d: a wrong sum of its half\n", *rank);
    CHECK(MPI_Comm_free(&half));
    CHECK(MPI_Comm_free(&comm));
    CHECK(MPI_Group_free(&part));
    CHECK(MPI_Group_free(&all));
    CHECK(MPI_Session_finalize(&session));
}

/* The same from the group of MPI_COMM_WORLD, beside it. */
static void try_world(int *rank, int *size, int *sum)
{
    MPI_Group all;
    MPI_Comm comm;
    CHECK(MPI_Init(NULL, NULL));
    CHECK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    CHECK(MPI_Comm_create_from_group(all, "hvdrun.test.world", MPI_INFO_NULL, MPI_ERRORS_RETURN,
                                     &comm));
    CHECK(MPI_Comm_rank(comm, rank));
    CHECK(MPI_Comm_size(comm, size));
    *sum = sum_of_ranks(comm);
    if (sum_of_ranks(MPI_COMM_WORLD) != *sum)
        printf("rank %d: a wrong sum of the world\n", *rank);
    CHECK(MPI_Comm_free(&comm));
    CHECK(MPI_Group_free(&all));
    CHECK(MPI_Finalize());
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "session";
    bool kept = strcmp(how, "kept") == 0;
    int rank = 0, size = 0, sum = 0;
    MPI_Session session;
    if (kept)
        CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    if (strcmp(how, "world") == 0)
        try_world(&rank, &size, &sum);
    else
        try_session(&rank, &size, &sum);
    for (int i = 0; kept && i < 3; i++)
        try_session(&rank, &size, &sum);
    if (strcmp(how, "twice") == 0)
        try_session(&rank, &size, &sum);
    if (kept)
        CHECK(MPI_Session_finalize(&session));
    printf("rank %d of %d sum %d\n", rank, size, sum);
    return 0;
}
