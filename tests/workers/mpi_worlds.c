/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An MPI program that spawns others, which are this program, too. Children find their task in the
 * arguments, their parents by MPI_Comm_get_parent.
 *
 * mpi_worlds talk N [INFO=VALUE...]: all ranks spawn N children, which send a number and get one;
 *   then both sides disconnect.
 * mpi_worlds again N TIMES: rank 0 alone does it, several times.
 * mpi_worlds nest N DEPTH: N children, whose rank 0 spawns N children, and so on.
 * mpi_worlds many N M: N children of one program and M of another, in one world.
 * mpi_worlds fail N WHAT: rank 0 spawns N children, of which one exits with WHAT, or ends itself if
 *   that is "kill" or "abort".
 * mpi_worlds hold N: rank 0 spawns N children, and all sleep for a long time.
 * mpi_worlds names N: two worlds of N children find each other by a published name.
 * mpi_worlds try N PROGRAM: rank 0 asks for N of PROGRAM, says what came of it, and asks for one
 *   of this program.
 * mpi_worlds leave: rank 0 has a child on the last slot; rank 1 asks for one and exits before the
 *   answer, and rank 0 asks until it gets another one.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

static int number_of(const char *text)
{
    return (int)strtol(text, NULL, 10);
}

static void say(const char *what)
{
    char here[4096];
    printf("%s rank %d of %d in %s\n", what, rank, size, getcwd(here, sizeof(here)) ? here : "?");
    fflush(stdout);
}

/* The folder for the memory that ranks of a host share, which hvdrun chooses. */
static void say_memory(void)
{
    const char *folder = getenv("OMPI_MCA_btl_vader_backing_directory");
    printf("memory in %s\n", folder != NULL ? folder : "?");
}

/* As one of the children. */
static void work(MPI_Comm parent, int argc, char **argv)
{
    int number = rank + 1, got = 0, parents = 0;
    const char *how = argc > 1 ? argv[1] : "talk";
    MPI_Comm_remote_size(parent, &parents);
    if (strcmp(how, "hold") == 0) {
        say("holding");
        sleep(600);
    }
    if (strcmp(how, "fail") == 0 && rank == 0) {
        if (strcmp(argv[2], "abort") == 0)
            MPI_Abort(MPI_COMM_WORLD, 9);
        if (strcmp(argv[2], "kill") == 0)
            raise(SIGKILL);
        _exit(number_of(argv[2]));
    }
    if (strcmp(how, "fail") == 0)
        sleep(60);
    if (rank == 0)
        say_memory();
    MPI_Send(&number, 1, MPI_INT, 0, 1, parent);
    MPI_Recv(&got, 1, MPI_INT, 0, 2, parent, MPI_STATUS_IGNORE);
    printf("child %d of %d with %d parents got %d\n", rank, size, parents, got);
    fflush(stdout);
    MPI_Comm_disconnect(&parent);
}

/* Two worlds that know only a name of each other. */
static void meet(MPI_Comm parent, int serves)
{
    char port[MPI_MAX_PORT_NAME] = "";
    int number = 42;
    MPI_Comm other = MPI_COMM_NULL;
    if (serves && rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Publish_name("worlds", MPI_INFO_NULL, port);
        MPI_Send(&number, 1, MPI_INT, 0, 1, parent);
    } else if (!serves) {
        MPI_Lookup_name("worlds", MPI_INFO_NULL, port);
    }
    if (serves)
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other);
    else
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other);
    if (rank == 0 && serves) {
        MPI_Recv(&number, 1, MPI_INT, 0, 3, other, MPI_STATUS_IGNORE);
        printf("server got %d\n", number);
        MPI_Unpublish_name("worlds", MPI_INFO_NULL, port);
        MPI_Close_port(port);
    } else if (rank == 0) {
        number = 77;
        MPI_Send(&number, 1, MPI_INT, 0, 3, other);
    }
    fflush(stdout);
    MPI_Comm_disconnect(&other);
    MPI_Comm_disconnect(&parent);
}

/* Talks with the children. */
static void lead(MPI_Comm children, int leader)
{
    int count = 0, sum = 0;
    MPI_Comm_remote_size(children, &count);
    for (int i = 0; leader && i < count; i++) {
        int number = 0, reply = 100 + i;
        MPI_Recv(&number, 1, MPI_INT, i, 1, children, MPI_STATUS_IGNORE);
        MPI_Send(&reply, 1, MPI_INT, i, 2, children);
        sum += number;
    }
    if (leader)
        printf("parent heard %d from %d children\n", sum, count);
    fflush(stdout);
    MPI_Comm_disconnect(&children);
}

static MPI_Comm spawn(char **argv, char **arguments, int count, MPI_Info info, MPI_Comm comm)
{
    MPI_Comm children = MPI_COMM_NULL;
    int *problems = calloc((size_t)count, sizeof(*problems));
    MPI_Comm_spawn(argv[0], arguments, count, info, 0, comm, &children, problems);
    free(problems);
    return children;
}

static void talk(int argc, char **argv, int count)
{
    MPI_Info info = MPI_INFO_NULL;
    if (rank == 0)
        say_memory();
    for (int i = 3; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        if (info == MPI_INFO_NULL)
            MPI_Info_create(&info);
        *value = '\0';
        MPI_Info_set(info, argv[i], value + 1);
    }
    lead(spawn(argv, MPI_ARGV_NULL, count, info, MPI_COMM_WORLD), rank == 0);
}

static void nest(char **argv, int count, int depth)
{
    char deeper[16];
    snprintf(deeper, sizeof(deeper), "%d", depth - 1);
    char *arguments[] = {(char *)"nest", argv[2], deeper, NULL};
    if (rank == 0 && depth > 0)
        lead(spawn(argv, arguments, count, MPI_INFO_NULL, MPI_COMM_SELF), 1);
}

static void many(char **argv, int one, int two)
{
    char *commands[] = {argv[0], argv[0]};
    char *first[] = {(char *)"talk", (char *)"first", NULL}, *second[] = {(char *)"talk", NULL};
    char **arguments[] = {first, second};
    int counts[] = {one, two};
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    MPI_Comm children = MPI_COMM_NULL;
    MPI_Comm_spawn_multiple(2, commands, arguments, counts, infos, 0, MPI_COMM_WORLD, &children,
                            MPI_ERRCODES_IGNORE);
    lead(children, rank == 0);
}

static void introduce(char **argv, int count)
{
    char *serve[] = {(char *)"names", argv[2], (char *)"serve", NULL};
    char *visit[] = {(char *)"names", argv[2], (char *)"visit", NULL};
    int ready = 0;
    MPI_Comm servers = spawn(argv, serve, count, MPI_INFO_NULL, MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Recv(&ready, 1, MPI_INT, 0, 1, servers, MPI_STATUS_IGNORE);
    MPI_Comm visitors = spawn(argv, visit, count, MPI_INFO_NULL, MPI_COMM_WORLD);
    MPI_Comm_disconnect(&visitors);
    MPI_Comm_disconnect(&servers);
}

static int attempt(const char *program, int count)
{
    MPI_Comm children = MPI_COMM_NULL;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    int result = MPI_Comm_spawn(program, MPI_ARGV_NULL, count, MPI_INFO_NULL, 0, MPI_COMM_SELF,
                                &children, MPI_ERRCODES_IGNORE);
    printf("spawn of %d: %s\n", count, result == MPI_SUCCESS ? "success" : "error");
    fflush(stdout);
    if (result == MPI_SUCCESS)
        lead(children, 1);
    return result == MPI_SUCCESS;
}

static void gone(int number)
{
    (void)number;
    _exit(0);
}

static void leave(char **argv)
{
    MPI_Comm child = MPI_COMM_NULL;
    if (rank == 0)
        child = spawn(argv, MPI_ARGV_NULL, 1, MPI_INFO_NULL, MPI_COMM_SELF);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        signal(SIGALRM, gone);
        alarm(1); /* no slot becomes free before */
        attempt(argv[0], 1);
    }
    while (!attempt(argv[0], 1))
        ;
    lead(child, 1);
    _exit(0); /* MPI_Finalize would wait for rank 1 */
}

int main(int argc, char **argv)
{
    MPI_Comm parent = MPI_COMM_NULL;
    int *universe = NULL, flag = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&parent);
    const char *task = argc > 1 ? argv[1] : "";
    int count = argc > 2 ? number_of(argv[2]) : 1;
    int last = argc > 3 ? number_of(argv[3]) : 1;
    if (parent != MPI_COMM_NULL) {
        say("child");
        if (strcmp(task, "nest") == 0)
            nest(argv, count, last);
        if (strcmp(task, "names") == 0)
            meet(parent, strcmp(argv[3], "serve") == 0);
        else
            work(parent, argc, argv);
    } else if (strcmp(task, "talk") == 0) {
        MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &universe, &flag);
        if (rank == 0)
            printf("universe of %d\n", flag ? *universe : 0);
        talk(argc, argv, count);
    } else if (strcmp(task, "again") == 0) {
        for (int i = 0; i < last && rank == 0; i++)
            lead(spawn(argv, MPI_ARGV_NULL, count, MPI_INFO_NULL, MPI_COMM_SELF), 1);
    } else if (strcmp(task, "nest") == 0) {
        nest(argv, count, last);
    } else if (strcmp(task, "many") == 0) {
        many(argv, count, last);
    } else if (strcmp(task, "names") == 0) {
        introduce(argv, count);
    } else if (strcmp(task, "hold") == 0) {
        char *arguments[] = {(char *)"hold", NULL};
        if (rank == 0)
            spawn(argv, arguments, count, MPI_INFO_NULL, MPI_COMM_SELF);
        say("parent");
        sleep(600);
    } else if (strcmp(task, "fail") == 0 && rank == 0) {
        char *arguments[] = {(char *)"fail", argc > 3 ? argv[3] : (char *)"1", NULL};
        lead(spawn(argv, arguments, count, MPI_INFO_NULL, MPI_COMM_SELF), 1);
    } else if (strcmp(task, "leave") == 0) {
        leave(argv);
    } else if (strcmp(task, "try") == 0 && rank == 0) {
        attempt(argc > 3 ? argv[3] : argv[0], count);
        attempt(argv[0], 1);
    }
    MPI_Finalize();
    printf("rank %d of %d done\n", rank, size);
    return 0;
}
