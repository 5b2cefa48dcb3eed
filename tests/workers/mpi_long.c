/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MPI programs that compute for long, and those that hang: mpi_long WAY SECONDS. Each WAY below is
 * a program of its own. The healthy ones end with "done"; in most of them, all ranks but one are in
 * MPI nearly all the time, and nobody writes.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LARGE (4 << 20)

static int rank, size;
static char *program;
static volatile unsigned long rounds;
static double until;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

__attribute__((noinline)) static void compute(double seconds)
{
    for (double end = now() + seconds; now() < end;) {
        for (int i = 0; i < 100000; i++)
            rounds++;
    }
}

/* Rank 0 says when all stop. */
static int goes_on(void)
{
    int on = now() < until;
    MPI_Bcast(&on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return on;
}

static void barrier(double seconds)
{
    if (rank == size - 1)
        compute(seconds);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* All are in the same two calls nearly all the time. */
static void barriers(double seconds)
{
    (void)seconds;
    do
        MPI_Barrier(MPI_COMM_WORLD);
    while (goes_on());
}

static void allreduce(double seconds)
{
    (void)seconds;
    double one = 1, sum;
    do {
        for (int i = 0; i < 100; i++)
            MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        compute(0.0005);
    } while (goes_on());
}

static void large(double seconds)
{
    (void)seconds;
    double *from = calloc(LARGE, sizeof(*from)), *to = calloc(LARGE, sizeof(*to));
    do
        MPI_Allreduce(from, to, LARGE, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    while (goes_on());
    free(from);
    free(to);
}

/* Rank 0 computes each message. */
static void receive(double seconds)
{
    int value = 0;
    for (int i = 0; i < 2; i++) {
        if (rank == 0)
            compute(seconds / 2);
        for (int to = 1; rank == 0 && to < size; to++)
            MPI_Send(&value, 1, MPI_INT, to, 1, MPI_COMM_WORLD);
        if (rank > 0)
            MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* One rank after another gets a number, and computes for a moment. The last one is -1. */
static void pass_on(double seconds)
{
    int number = 0, next = (rank + 1) % size, last = (rank + size - 1) % size;
    (void)seconds;
    for (int first = rank == 0; number >= 0; first = 0) {
        if (!first)
            MPI_Recv(&number, 1, MPI_INT, last, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        compute(0.001);
        if (rank == 0)
            number = now() > until ? -1 : number + 1;
        MPI_Ssend(&number, 1, MPI_INT, next, 2, MPI_COMM_WORLD);
    }
    if (rank == 0)
        MPI_Recv(&number, 1, MPI_INT, last, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void exchange(double seconds)
{
    int next = (rank + 1) % size, last = (rank + size - 1) % size, in, out = 0;
    (void)seconds;
    do {
        for (int i = 0; i < 1000; i++)
            MPI_Sendrecv(&out, 1, MPI_INT, next, 3, &in, 1, MPI_INT, last, 3, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
    } while (goes_on());
}

static void probe(double seconds)
{
    int value = 0, there = 0;
    if (rank == 0)
        compute(seconds);
    for (int to = 1; rank == 0 && to < size; to++)
        MPI_Send(&value, 1, MPI_INT, to, 4, MPI_COMM_WORLD);
    while (rank > 0 && !there)
        MPI_Iprobe(0, 4, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
    if (rank > 0)
        MPI_Recv(&value, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* All poll; only a clock says when to go on. */
static void test(double seconds)
{
    MPI_Request request;
    int done = 0, value;
    (void)seconds;
    MPI_Irecv(&value, 1, MPI_INT, rank, 5, MPI_COMM_WORLD, &request);
    while (now() < until)
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    MPI_Send(&rank, 1, MPI_INT, rank, 5, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void overlap(double seconds)
{
    double one = rank, sum;
    for (int i = 0; i < 3; i++) {
        MPI_Request request;
        MPI_Iallreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
        compute(rank == 0 ? seconds / 3 : 0.01);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

static void one_sided(double seconds)
{
    double *memory, value = 1;
    MPI_Win window;
    (void)seconds;
    MPI_Win_allocate(sizeof(*memory), sizeof(*memory), MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                     &window);
    MPI_Win_fence(0, window);
    do {
        MPI_Accumulate(&value, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, MPI_SUM, window);
        MPI_Win_fence(0, window);
    } while (goes_on());
    MPI_Win_free(&window);
}

static void file(double seconds)
{
    MPI_File file;
    char name[] = "mpi_long.XXXXXX", block[512] = "";
    int fd = rank == 0 ? mkstemp(name) : -1;
    (void)seconds;
    MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    do {
        compute(rank == 0 ? 0.5 : 0);
        MPI_File_write_at_all(file, rank * (MPI_Offset)sizeof(block), block, sizeof(block),
                              MPI_CHAR, MPI_STATUS_IGNORE);
    } while (goes_on());
    MPI_File_close(&file);
    if (fd >= 0)
        unlink(name);
}

static double op_seconds;

static void add(void *from, void *to, int *count, MPI_Datatype *type)
{
    (void)type;
    compute(op_seconds);
    for (int i = 0; i < *count; i++)
        ((double *)to)[i] += ((double *)from)[i];
}

/* The operation of a reduction computes. */
static void operation(double seconds)
{
    double one = 1, sum;
    MPI_Op op;
    op_seconds = seconds / 2;
    MPI_Op_create(add, 1, &op);
    MPI_Reduce(&one, &sum, 1, MPI_DOUBLE, op, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Op_free(&op);
}

/* The thread of rank 0 computes what its main thread waits for in MPI. */
static void *send_late(void *seconds)
{
    int value = 0;
    compute(*(double *)seconds);
    MPI_Send(&value, 1, MPI_INT, 0, 6, MPI_COMM_SELF);
    return NULL;
}

static void own_thread(double seconds)
{
    pthread_t aside;
    int value;
    if (rank == 0) {
        pthread_create(&aside, NULL, send_late, &seconds);
        MPI_Recv(&value, 1, MPI_INT, 0, 6, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        pthread_join(aside, NULL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* As send_late(), but it sleeps, as one does that waits for something outside of MPI. */
static void *sleep_and_send(void *seconds)
{
    int value = 0;
    usleep((useconds_t)(*(double *)seconds * 1e6));
    MPI_Send(&value, 1, MPI_INT, 0, 6, MPI_COMM_SELF);
    return NULL;
}

static void wait_for_thread(void *(*thread)(void *seconds), double seconds)
{
    pthread_t aside;
    int value;
    pthread_create(&aside, NULL, thread, &seconds);
    MPI_Recv(&value, 1, MPI_INT, 0, 6, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    pthread_join(aside, NULL);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void sleeping_thread(double seconds)
{
    wait_for_thread(sleep_and_send, seconds);
}

/* The main threads wait for something outside of MPI, and a helper thread is in a call. */
static void *receive_from_self(void *context)
{
    int value;
    MPI_Recv(&value, 1, MPI_INT, 0, 6, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    return context;
}

static void receiving_thread(double seconds)
{
    pthread_t aside;
    int value = 0;
    pthread_create(&aside, NULL, receive_from_self, NULL);
    usleep((useconds_t)(seconds * 1e6));
    MPI_Send(&value, 1, MPI_INT, 0, 6, MPI_COMM_SELF);
    pthread_join(aside, NULL);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The second threads of all ranks do the work, which is to talk. */
static void *talk(void *context)
{
    int value = 0, next = (rank + 1) % size, last = (rank + size - 1) % size, in, on = 1;
    MPI_Comm *comm = context;
    while (on) {
        for (int i = 0; i < 100; i++)
            MPI_Sendrecv(&value, 1, MPI_INT, next, 3, &in, 1, MPI_INT, last, 3, *comm,
                         MPI_STATUS_IGNORE);
        on = now() < until;
        MPI_Bcast(&on, 1, MPI_INT, 0, *comm);
    }
    MPI_Send(&value, 1, MPI_INT, 0, 6, MPI_COMM_SELF);
    return NULL;
}

static void talking_thread(double seconds)
{
    (void)seconds;
    MPI_Comm comm;
    pthread_t aside;
    int value;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    pthread_create(&aside, NULL, talk, &comm);
    MPI_Recv(&value, 1, MPI_INT, 0, 6, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    pthread_join(aside, NULL);
    MPI_Barrier(MPI_COMM_WORLD);
}

#define CROWD 60

/* Its name is long, so that the text of its stack is. */
__attribute__((noinline)) static int
work_or_sleep_at_the_end_of_a_stack_that_has_so_much_text_that_it_does_not_fit(void *seconds,
                                                                               int depth)
{
    if (depth > 0)
        return 1 + work_or_sleep_at_the_end_of_a_stack_that_has_so_much_text_that_it_does_not_fit(
                       seconds, depth - 1);
    return seconds != NULL ? send_late(seconds) != NULL : pause();
}

static void *go_deep(void *seconds)
{
    int depth =
        work_or_sleep_at_the_end_of_a_stack_that_has_so_much_text_that_it_does_not_fit(seconds, 40);
    rounds += (unsigned long)depth;
    return NULL;
}

/* So many threads sleep that nobody reads the one that works. */
static void crowd(double seconds)
{
    pthread_t sleeper;
    for (int i = 0; i < CROWD; i++)
        pthread_create(&sleeper, NULL, go_deep, NULL);
    wait_for_thread(go_deep, seconds);
}

/* One rank sleeps outside of MPI, and will come. */
static void sleeper(double seconds)
{
    if (rank == size - 1)
        usleep((useconds_t)(seconds * 1e6));
    MPI_Barrier(MPI_COMM_WORLD);
}

/* libmpi_solver.KIND.so, beside the program. */
static void *find_in_solver(const char *name, double seconds)
{
    char path[4096];
    const char *base = strrchr(program, '/') + 1, *kind = strrchr(base, '.');
    snprintf(path, sizeof(path), "%.*slibmpi_solver%s.so", (int)(base - program), program, kind);
    void *library = dlopen(path, RTLD_NOW);
    void *symbol = library != NULL ? dlsym(library, name) : NULL;
    if (symbol == NULL)
        MPI_Abort(MPI_COMM_WORLD, 3);
    *(double *)dlsym(library, "mpi_solver_seconds") = seconds;
    return symbol;
}

static void solver(double seconds)
{
    void (*solve)(void);
    void *symbol = find_in_solver("MPI_Solve", seconds);
    memcpy(&solve, &symbol, sizeof(solve));
    solve();
    MPI_Barrier(MPI_COMM_WORLD);
}

static void library_operation(double seconds)
{
    double one = 1, sum;
    MPI_Op op;
    MPI_User_function *function;
    void *symbol = find_in_solver("mpi_solver_add", seconds);
    memcpy(&function, &symbol, sizeof(function));
    MPI_Op_create(function, 1, &op);
    MPI_Reduce(&one, &sum, 1, MPI_DOUBLE, op, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Op_free(&op);
}

/* Children of MPI, which compute. */
static void spawn(double seconds)
{
    MPI_Comm parent, children;
    char text[32], *arguments[] = {"spawn", text, NULL};
    snprintf(text, sizeof(text), "%g", seconds);
    MPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL) {
        MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                       MPI_ERRCODES_IGNORE);
        MPI_Barrier(children);
        MPI_Comm_disconnect(&children);
        return;
    }
    compute(seconds);
    MPI_Barrier(parent);
    MPI_Comm_disconnect(&parent);
}

/* ---- these hang */

static void no_sender(double seconds)
{
    int value;
    (void)seconds;
    if (rank == size - 1)
        MPI_Recv(&value, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void ssend(double seconds)
{
    int value = 0;
    (void)seconds;
    MPI_Ssend(&value, 1, MPI_INT, (rank + 1) % size, 8, MPI_COMM_WORLD);
    MPI_Recv(&value, 1, MPI_INT, (rank + size - 1) % size, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void mismatch(double seconds)
{
    double one = 1, sum;
    (void)seconds;
    if (rank == size - 1)
        MPI_Bcast(&one, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    else
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(double seconds);
    } ways[] = {{"barrier", barrier},
                {"barriers", barriers},
                {"allreduce", allreduce},
                {"large", large},
                {"receive", receive},
                {"pass_on", pass_on},
                {"exchange", exchange},
                {"probe", probe},
                {"test", test},
                {"overlap", overlap},
                {"one_sided", one_sided},
                {"file", file},
                {"operation", operation},
                {"own_thread", own_thread},
                {"spawn", spawn},
                {"sleeping_thread", sleeping_thread},
                {"talking_thread", talking_thread},
                {"receiving_thread", receiving_thread},
                {"crowd", crowd},
                {"sleeper", sleeper},
                {"solver", solver},
                {"library_operation", library_operation},
                {"no_sender", no_sender},
                {"ssend", ssend},
                {"mismatch", mismatch}};
    int level;
    program = argv[0];
    double seconds = argc > 2 ? strtod(argv[2], NULL) : 1;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    until = now() + seconds;
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        if (argc > 1 && strcmp(argv[1], ways[i].name) == 0)
            ways[i].run(seconds);
    }
    MPI_Finalize();
    if (rank == 0)
        printf("done\n");
    return 0;
}
