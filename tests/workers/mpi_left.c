/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi_left WAY SECONDS: the last rank exits with 0 without MPI_Finalize, and so do the others in
 * the end. Until then they are in MPI, or elsewhere for SECONDS:
 *
 * barrier: they wait for the one that has left. finalize: likewise. receive: rank 0 does so in
 * another call.
 * compute, sleep: they do, and never call MPI again.
 * alarm: they wait, and a timer of their own ends them.
 * late: rank 0 sleeps, and the others wait for its message.
 * accept: rank 0 waits for a client of another job, and the others for rank 0.
 * child: they wait for a child of rank 0, which sleeps and then sends a message.
 * large: rank 0 sends SECONDS times 1 MiB in one message to rank 1. Take three ranks.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int rank, size;

static void compute(int seconds)
{
    for (time_t end = time(NULL) + seconds; time(NULL) < end;)
        continue;
}

static void on_alarm(int number)
{
    (void)number;
    _exit(rank == 0 && write(STDOUT_FILENO, "done\n", 5) != 5);
}

/* Rank 0 does not say why it comes late. */
static void tell_others(int value)
{
    for (int to = 1; rank == 0 && to < size - 1; to++)
        MPI_Send(&value, 1, MPI_INT, to, 1, MPI_COMM_WORLD);
    if (rank > 0)
        MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void late(int seconds)
{
    if (rank == 0)
        sleep((unsigned)seconds);
    tell_others(1);
}

static void accept_client(void)
{
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm client;
    if (rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &client);
    }
    tell_others(1);
}

static void receive(void)
{
    int value;
    if (rank == 0)
        MPI_Recv(&value, 1, MPI_INT, size - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void child(char *program, int seconds)
{
    char text[16], *arguments[] = {"child", text, NULL};
    MPI_Comm children;
    int value = 0;
    snprintf(text, sizeof(text), "%d", seconds);
    if (rank == 0) {
        MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &children,
                       MPI_ERRCODES_IGNORE);
        MPI_Recv(&value, 1, MPI_INT, 0, 1, children, MPI_STATUS_IGNORE);
    }
    tell_others(value);
}

static void be_child(MPI_Comm parent, int seconds)
{
    int value = 1;
    sleep((unsigned)seconds);
    MPI_Send(&value, 1, MPI_INT, 0, 1, parent);
}

static void large(int megabytes)
{
    int count = megabytes << 18;
    int *data = calloc((size_t)count, sizeof(*data));
    if (rank == 0)
        MPI_Send(data, count, MPI_INT, 1, 1, MPI_COMM_WORLD);
    else
        MPI_Recv(data, count, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    tell_others(1);
    free(data);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "barrier";
    int seconds = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0;
    MPI_Comm parent;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&parent);
    MPI_Barrier(MPI_COMM_WORLD); /* over UCX, a rank that connects to one that ends fails */
    if (parent != MPI_COMM_NULL)
        be_child(parent, seconds);
    if (parent != MPI_COMM_NULL || rank == size - 1)
        _exit(0);
    if (strcmp(way, "alarm") == 0 && signal(SIGALRM, on_alarm) != SIG_ERR)
        alarm((unsigned)seconds);
    if (strcmp(way, "compute") == 0)
        compute(seconds);
    else if (strcmp(way, "sleep") == 0)
        sleep((unsigned)seconds);
    else if (strcmp(way, "late") == 0)
        late(seconds);
    else if (strcmp(way, "accept") == 0)
        accept_client();
    else if (strcmp(way, "receive") == 0)
        receive();
    else if (strcmp(way, "finalize") == 0)
        MPI_Finalize();
    else if (strcmp(way, "large") == 0)
        large(seconds);
    else if (strcmp(way, "child") == 0)
        child(argv[0], seconds);
    else
        MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        printf("done\n");
        fflush(stdout);
    }
    _exit(0);
}
