/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that were stuck in earnest: which rank their stacks lead to, and what is said of its place.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "features/hang/culprit.h"

#define FRAMES_MAX 16
#define RANKS_MAX 16
#define TEXTS_MAX 512

static char *texts[TEXTS_MAX]; /* places borrow them */
static size_t text_count;

static char *keep(char *text)
{
    assert_true(text_count < TEXTS_MAX);
    return texts[text_count++] = text;
}

static int teardown(void **state)
{
    (void)state;
    while (text_count > 0)
        free(texts[--text_count]);
    return 0;
}

/* "/x/a.py:7 f", "libc.so.6 read" (native), "process sh" */
static struct stack_frame frame_of(const char *text, size_t length)
{
    char *copy = keep(mem_strndup(text, length)), *space = strrchr(copy, ' ');
    struct stack_frame frame = {.function = copy, .file = ""};
    if (strncmp(copy, "process ", 8) == 0 || copy[0] == '(' || space == NULL)
        return frame;
    char *colon = strrchr(copy, ':');
    *space = '\0';
    frame.function = space + 1;
    frame.file = copy;
    frame.native = strstr(copy, ".py") == NULL && copy[0] != '<';
    if (colon != NULL) {
        *colon = '\0';
        frame.line = (int)strtol(colon + 1, NULL, 10);
    }
    return frame;
}

/* "/x/a.py:1 f > /x/a.py:2 g; calls futex" */
static void add(struct places *places, int rank, enum stack_role role, const char *text)
{
    struct stack_frame frames[FRAMES_MAX];
    struct stack stack = {.rank = rank, .role = role, .frames = frames, .doing = "", .trouble = ""};
    const char *end = strstr(text, "; ");
    if (end != NULL)
        stack.doing = end + 2;
    end = end != NULL ? end : text + strlen(text);
    while (text < end) {
        const char *next = strstr(text, " > ");
        size_t length = (size_t)((next != NULL && next < end ? next : end) - text);
        frames[stack.count] = frame_of(text, length);
        if (strcmp(frames[stack.count].function, STACK_MORE_FRAMES) == 0)
            frames[stack.count].native = stack.bare;
        stack.bare = stack.bare || strncmp(frames[0].function, "process ", 8) == 0;
        stack.count++;
        text += length + (next != NULL && next < end ? 3 : 0);
    }
    stack.held = strncmp(stack.doing, "stopped", 7) == 0;
    places_add(places, &stack);
}

/* What is said of these ranks, and frees the places. */
static void expect_of(struct places *places, const char *expected)
{
    struct culprit_rank ranks[RANKS_MAX];
    struct buf text AUTO_BUF = BUF_INIT(10000);
    places_find(places);
    int count = (int)places_count(places);
    for (int i = 0; i < count; i++) {
        ranks[i] = (struct culprit_rank){
            .rank = places_rank(places, (size_t)i), .launched = -1, .enqueued = -1};
        ranks[i].place = *places_of(places, ranks[i].rank);
    }
    (void)culprit_find(ranks, count, NULL, NULL, &text);
    assert_string_equal(buf_text(&text), expected);
    places_destroy(places);
}

#define NOBODY "no rank stands out"

/* Rank i has the i-th of these main threads; "": it cannot be read. */
static void expect(const char *const *stacks, const char *expected)
{
    struct places *places = places_create();
    for (int i = 0; stacks[i] != NULL; i++)
        add(places, i, STACK_MAIN, stacks[i]);
    expect_of(places, expected);
}

#define EXPECT(expected, ...) expect((const char *const[]){__VA_ARGS__, NULL}, expected)

#define BARRIER "/x/t.py:9 step > /x/t.py:4 barrier; calls recvfrom"

static void test_one_and_a_quarter(void **state)
{
    (void)state;
    EXPECT("rank 1 is elsewhere: in t.py:6 load; 2 others are in t.py:4 barrier", BARRIER,
           "/x/t.py:8 step > /x/t.py:6 load; calls openat", BARRIER);
    EXPECT("rank 0 is elsewhere: in t.py:9 step; 2 others are in t.py:4 barrier", "/x/t.py:9 step",
           BARRIER, BARRIER);
    EXPECT("rank 2 is elsewhere: in t.py:6 read (nfs4); 2 others are in t.py:4 barrier", BARRIER,
           BARRIER, "/x/t.py:8 step > /x/t.py:6 read; calls read on nfs4");
    EXPECT("ranks 1,3 are elsewhere: rank 1 is in t.py:6 load, rank 3 is in t.py:7 save; 6 others "
           "are in t.py:4 barrier",
           BARRIER, "/x/t.py:8 step > /x/t.py:6 load", BARRIER, "/x/t.py:7 save", BARRIER, BARRIER,
           BARRIER, BARRIER);
    EXPECT("ranks 1,3 are elsewhere: in t.py:6 load; 6 others are in t.py:4 barrier", BARRIER,
           "/x/t.py:8 step > /x/t.py:6 load", BARRIER, "/x/t.py:8 step > /x/t.py:6 load", BARRIER,
           BARRIER, BARRIER, BARRIER);
}

static void test_no_rank_stands_out(void **state)
{
    (void)state;
    EXPECT(NOBODY, BARRIER, BARRIER, BARRIER);
    EXPECT(NOBODY, BARRIER, "/x/t.py:6 load");
    EXPECT(NOBODY, BARRIER, BARRIER, "/x/t.py:6 load", "/x/t.py:6 load");
    EXPECT(NOBODY, BARRIER, "/x/t.py:6 load", "/x/t.py:7 save");
    EXPECT(NOBODY, "");
    EXPECT(NOBODY, "", "", BARRIER);
    expect_of(places_create(), NOBODY);
}

/* They are not blamed, and do not make others a majority. */
static void test_stacks_that_cannot_be_read(void **state)
{
    (void)state;
    EXPECT(NOBODY, BARRIER, BARRIER, "");
    EXPECT("rank 1 is elsewhere: in t.py:6 load; 3 others are in t.py:4 barrier", BARRIER,
           "/x/t.py:6 load", BARRIER, "", BARRIER);
    EXPECT(NOBODY, BARRIER, "/x/t.py:6 load", BARRIER, "", "", "");
    EXPECT(NOBODY, BARRIER, BARRIER, BARRIER, "(more frames) > /x/u.py:1 f > /x/u.py:1 f");
}

/* ---- MPI, with native frames */

#define MPICH "process a.out > a.c:30 main > libmpich.so.12 PMPI_Barrier > "
#define UCX "process a.out > (more frames) > (code without a file)"

static void test_mpich(void **state)
{
    (void)state;
    /* rank 2 sleeps */
    EXPECT("rank 2 is elsewhere: in a.c:12 nap; 3 others are in MPI_Barrier, called by a.c:30 "
           "main",
           MPICH "libmpich.so.12 MPIDI_progress > libucp.so ucp_progress",
           MPICH "libmpich.so.12 MPIDI_CH3I_Progress",
           "process a.out > a.c:28 main > a.c:12 nap > libc.so.6 clock_nanosleep",
           MPICH "libmpich.so.12 +0x1234 > libc.so.6 sched_yield");
    EXPECT("rank 2 is elsewhere: in a.c:12 nap; 3 others are in MPI_Barrier, called by a.c:30 "
           "main",
           MPICH "libucp.so ucp_progress", MPICH "x.so f",
           "process a.out > a.c:28 main > a.c:12 nap > libc.so.6 clock_nanosleep", MPICH "x.so g",
           UCX);
    /* rank 2 spins in code of its own */
    EXPECT("rank 2 is elsewhere: in a.c:14 solve; 3 others are in MPI_Barrier, called by a.c:30 "
           "main",
           MPICH "libmpich.so.12 f", MPICH "libmpich.so.12 g",
           "process a.out > a.c:28 main > a.c:14 solve; running", MPICH "libmpich.so.12 h");
    /* rank 1 calls MPI_Bcast, the others MPI_Allreduce */
    EXPECT("rank 1 is elsewhere: in MPI_Bcast, called by a.c:18 main; 3 others are in "
           "MPI_Allreduce, called by a.c:20 main",
           "process a.out > a.c:20 main > libmpich.so.12 MPI_Allreduce > libmpich.so.12 f",
           "process a.out > a.c:18 main > libmpich.so.12 MPI_Bcast > libmpich.so.12 f",
           "process a.out > a.c:20 main > libmpich.so.12 MPI_Allreduce > libmpich.so.12 g",
           "process a.out > a.c:20 main > libmpich.so.12 MPI_Allreduce");
    /* rank 1 has ended */
    EXPECT(NOBODY ": all are in MPI_Barrier, called by a.c:30 main", MPICH "libmpich.so.12 f",
           MPICH "libmpich.so.12 g > libucp.so h", MPICH "libmpich.so.12 f > libc.so.6 poll");
    EXPECT(NOBODY, MPICH "libmpich.so.12 f", MPICH "libmpich.so.12 g", UCX);
    EXPECT(NOBODY, UCX, UCX, "process a.out > a.c:28 main", UCX);
}

#define OPEN_MPI "process a.out > a.c:33 main > libmpi.so.40.30.4 PMPI_Barrier > "

static void test_open_mpi(void **state)
{
    (void)state;
    EXPECT(NOBODY ": all are in MPI_Barrier, called by a.c:33 main",
           OPEN_MPI "libmpi.so.40.30.4 ompi_coll_base_barrier_intra_recursivedoubling > "
                    "mca_pml_ob1.so mca_pml_ob1_recv > libc.so.6 sched_yield",
           OPEN_MPI "libmpi.so.40.30.4 ompi_coll_base_barrier_intra_recursivedoubling > "
                    "libmpi.so.40.30.4 ompi_request_default_wait > libc.so.6 sched_yield",
           OPEN_MPI "libmpi.so.40.30.4 ompi_request_default_wait > libc.so.6 sched_yield");
    EXPECT("rank 2 is elsewhere: in a.c:18 lose_way; 2 others are in MPI_Barrier, called by a.c:33 "
           "main",
           OPEN_MPI "libmpi.so.40.30.4 f > libc.so.6 sched_yield",
           OPEN_MPI "libmpi.so.40.30.4 g > libc.so.6 sched_yield",
           "process a.out > a.c:32 main > a.c:18 lose_way; running");
    /* the calls are the same, and what leads there is not */
    EXPECT("rank 1 is elsewhere: in MPI_Barrier, called by a.c:18 main; 3 others are in "
           "MPI_Barrier, called by a.c:20 main",
           "process a.out > a.c:20 main > libmpi.so.40 PMPI_Barrier > libc.so.6 sched_yield",
           "process a.out > a.c:18 main > libmpi.so.40 PMPI_Barrier > libc.so.6 sched_yield",
           "process a.out > a.c:20 main > libmpi.so.40 PMPI_Barrier > libc.so.6 sched_yield",
           "process a.out > a.c:20 main > libmpi.so.40 PMPI_Barrier > libc.so.6 sched_yield");
}

static void test_calls_that_do_not_fit(void **state)
{
    (void)state;
    EXPECT(NOBODY
           ": rank 0 is in MPI_Ssend, called by a.c:7 give, rank 1 is in MPI_Recv, called by "
           "a.c:9 take",
           "process a.out > a.c:7 give > libmpi.so.40 PMPI_Ssend > libc.so.6 sched_yield",
           "process a.out > a.c:9 take > libmpi.so.40 PMPI_Recv");
    EXPECT(NOBODY ": it is in mpi_recv_", "process a.out > libmpi_mpifh.so.40 mpi_recv_");
}

/* ---- Python */

#define WAIT " > /v/site-packages/horovod/handles.py:129 Handles._wait"

static void test_where_they_part(void **state)
{
    (void)state;
    EXPECT("rank 2 is elsewhere: in p.py:385 train > handles.py:129 Handles._wait; 3 others are in "
           "p.py:384 train > handles.py:129 Handles._wait",
           "/x/p.py:400 main > /x/p.py:384 train" WAIT, "/x/p.py:400 main > /x/p.py:384 train" WAIT,
           "/x/p.py:400 main > /x/p.py:385 train" WAIT,
           "/x/p.py:400 main > /x/p.py:384 train" WAIT);
    /* how they part inside of a library says nothing, once they have parted before */
    EXPECT("rank 0 is elsewhere: in p.py:9 save; 7 others are in p.py:384 train", "/x/p.py:9 save",
           "/x/p.py:384 train > /v/site-packages/a.py:1 f", "/x/p.py:384 train" WAIT,
           "/x/p.py:384 train" WAIT, "/x/p.py:384 train" WAIT, "/x/p.py:384 train" WAIT,
           "/x/p.py:384 train" WAIT, "/x/p.py:384 train" WAIT);
}

#define W " > /x/mw.py:3 w; calls recvfrom"

/* The master waits for results, as it should; one worker is stuck. */
static void test_a_master_and_a_worker(void **state)
{
    (void)state;
    EXPECT("ranks 0,5 are elsewhere: rank 0 is in mw.py:40 main > mw.py:3 w, rank 5 is in "
           "mw.py:12 solve; 6 others are in mw.py:41 main > mw.py:3 w",
           "/x/mw.py:40 main > /x/mw.py:30 master" W, "/x/mw.py:41 main > /x/mw.py:20 worker" W,
           "/x/mw.py:41 main > /x/mw.py:20 worker" W, "/x/mw.py:41 main > /x/mw.py:20 worker" W,
           "/x/mw.py:41 main > /x/mw.py:20 worker" W,
           "/x/mw.py:41 main > /x/mw.py:21 worker > /x/mw.py:12 solve",
           "/x/mw.py:41 main > /x/mw.py:20 worker" W, "/x/mw.py:41 main > /x/mw.py:20 worker" W);
}

/* With native frames, the Python frames still say where a rank is. */
static void test_native_frames_of_python(void **state)
{
    (void)state;
    EXPECT("rank 1 is elsewhere: in p.py:42 next_batch; 3 others are in p.py:44 sync",
           "/x/p.py:50 main > /x/p.py:44 sync > libc.so.6 __futex_abstimed_wait_common",
           "/x/p.py:49 main > /x/p.py:42 next_batch > libc.so.6 __open",
           "/x/p.py:50 main > /x/p.py:44 sync > (more frames) > libc.so.6 poll",
           "/x/p.py:50 main > /x/p.py:44 sync > libc.so.6 __futex_abstimed_wait_common");
}

#define LIB "/usr/lib/python3.11/"

/* What the standard library does inside is not the place. */
static void test_the_standard_library(void **state)
{
    (void)state;
    EXPECT("rank 1 is elsewhere: in p.py:7 unpack; 2 others are in p.py:9 join",
           "/x/p.py:9 join > " LIB "threading.py:320 Condition.wait",
           "/x/p.py:7 unpack > " LIB "subprocess.py:548 run > " LIB
           "subprocess.py:1955 Popen._try_wait",
           "/x/p.py:9 join > " LIB "threading.py:324 Condition.wait");
    EXPECT(NOBODY, "/x/p.py:9 join > " LIB "threading.py:320 Condition.wait",
           "/x/p.py:9 join > " LIB "threading.py:324 Condition.wait",
           "/x/p.py:9 join > <frozen codecs>:322 decode");
}

/* ---- main threads that wait for others of their own */

static void test_a_child_process(void **state)
{
    (void)state;
    struct places *places = places_create();
    for (int rank = 0; rank < 4; rank++)
        add(places, rank, STACK_MAIN,
            rank == 2 ? "/x/p.py:7 unpack > " LIB "subprocess.py:1955 Popen._try_wait; calls wait4"
                      : "/x/p.py:9 all_reduce; calls recvfrom");
    add(places, 2, STACK_CHILD, "process tar; calls read, waits in pipe_read");
    expect_of(places, "rank 2 is elsewhere: in p.py:7 unpack, and a child process of it (tar) "
                      "calls read, waits in pipe_read; 3 others are in p.py:9 all_reduce");
}

/* What an agent sends need not begin as it should. */
static void test_a_child_process_of_a_liar(void **state)
{
    (void)state;
    struct places *places = places_create();
    const struct stack_frame frame = {.function = "tar", .file = ""};
    for (int rank = 0; rank < 4; rank++)
        add(places, rank, STACK_MAIN,
            rank == 2 ? "/x/p.py:7 unpack > " LIB "subprocess.py:1955 Popen._try_wait; calls wait4"
                      : "/x/p.py:9 all_reduce; calls recvfrom");
    places_add(places, &(struct stack){.rank = 2,
                                       .role = STACK_CHILD,
                                       .bare = true,
                                       .doing = "calls read",
                                       .frames = &frame,
                                       .count = 1,
                                       .trouble = ""});
    expect_of(places, "rank 2 is elsewhere: in p.py:7 unpack, and a child process of it (tar) "
                      "calls read; 3 others are in p.py:9 all_reduce");
}

/* PyTorch's DataLoader: two worker processes for each rank. */
static void test_a_data_loader(void **state)
{
    (void)state;
    static const char waits[] =
        "/x/stuck.py:20 main > /v/dist-packages/torch/utils/data/dataloader.py:1146 "
        "Iter._try_get_data > " LIB "multiprocessing/queues.py:113 Queue.get > " LIB
        "selectors.py:415 _PollLikeSelector.select; calls poll";
    static const char idle[] =
        "/v/dist-packages/torch/utils/data/worker.py:254 _worker_loop > " LIB
        "multiprocessing/queues.py:113 Queue.get > " LIB "selectors.py:415 select; calls poll";
    static const char reads[] = "/v/dist-packages/torch/utils/data/worker.py:308 _worker_loop > "
                                "/x/stuck.py:6 DS.__getitem__; calls openat";
    struct places *places = places_create();
    for (int rank = 0; rank < 8; rank++) {
        add(places, rank, STACK_MAIN,
            rank == 5 ? waits : "/x/stuck.py:21 main > /x/stuck.py:9 all_reduce; calls futex");
        if (rank == 5)
            add(places, rank, STACK_OTHER, LIB "threading.py:320 Condition.wait; calls futex");
        add(places, rank, STACK_CHILD, rank == 5 ? reads : idle);
        add(places, rank, STACK_CHILD, rank == 5 ? reads : idle);
    }
    expect_of(places, "rank 5 is elsewhere: in dataloader.py:1146 Iter._try_get_data, and a child "
                      "process of it is in stuck.py:6 DS.__getitem__; 7 others are in stuck.py:9 "
                      "all_reduce");
}

/* All main threads wait at one place, for a thread or a program of their own. */
static void test_all_wait_for_their_own(void **state)
{
    (void)state;
    struct places *places = places_create();
    for (int rank = 0; rank < 4; rank++) {
        add(places, rank, STACK_MAIN, "/x/p.py:9 main > " LIB "threading.py:1116 Thread.join");
        add(places, rank, STACK_OTHER, rank == 3 ? "/x/p.py:4 load" : "/x/p.py:5 all_reduce");
        add(places, rank, STACK_OTHER, "/x/p.py:7 beat");
    }
    expect_of(places,
              "rank 3 is elsewhere: in p.py:9 main, and another thread of it is in p.py:4 load");
    places = places_create();
    for (int rank = 0; rank < 4; rank++) {
        add(places, rank, STACK_MAIN,
            "/x/p.py:9 main > " LIB "asyncio/runners.py:118 Runner.run > " LIB
            "selectors.py:468 EpollSelector.select; calls epoll_wait");
        add(places, rank, STACK_OTHER, rank == 0 ? "/x/p.py:4 load" : "/x/p.py:5 all_reduce");
    }
    expect_of(places,
              "rank 0 is elsewhere: in p.py:9 main, and another thread of it is in p.py:4 load");
    places = places_create();
    for (int rank = 0; rank < 4; rank++) {
        add(places, rank, STACK_MAIN, "process sh; calls wait4, waits in do_wait");
        add(places, rank, STACK_CHILD,
            rank == 1 ? "process solver; calls openat, waits in wait_for_partner"
                      : "process solver; calls recvfrom, waits in wait_woken");
    }
    expect_of(places, "rank 1 is elsewhere: calls wait4, waits in do_wait, and a child process of "
                      "it (solver) calls openat, waits in wait_for_partner");
    places = places_create();
    for (int rank = 0; rank < 4; rank++) {
        add(places, rank, STACK_MAIN, "/x/p.py:9 main; calls recvfrom");
        add(places, rank, STACK_OTHER, rank == 3 ? "/x/p.py:4 load" : "/x/p.py:5 all_reduce");
    }
    expect_of(places, NOBODY); /* nobody waits for that thread */
}

/* ---- programs without frames */

#define RECEIVES "process solver; calls recvfrom, waits in wait_woken"

static void test_system_calls(void **state)
{
    (void)state;
    EXPECT("rank 2 is elsewhere: calls openat, waits in wait_for_partner; 3 others: calls "
           "recvfrom, waits in wait_woken",
           RECEIVES, RECEIVES, "process solver; calls openat, waits in wait_for_partner", RECEIVES);
    EXPECT("ranks 2-3 are elsewhere: rank 2 calls openat, rank 3 calls flock; 6 others: calls "
           "recvfrom, waits in wait_woken",
           RECEIVES, RECEIVES, "process solver; calls openat", "process solver; calls flock",
           RECEIVES, RECEIVES, RECEIVES, RECEIVES);
    EXPECT("rank 0 is elsewhere: calls read; 2 others: calls futex",
           "process python3.7 (hvdrun knows only Python 3.8 to 3.14); calls read",
           "process python3.7 (hvdrun knows only Python 3.8 to 3.14); calls futex",
           "process python3.7 (hvdrun knows only Python 3.8 to 3.14); calls futex");
    /* who runs may wait the next moment, and the reverse */
    EXPECT(NOBODY, "process solver; running", "process solver; running", RECEIVES,
           "process solver; running");
    EXPECT(NOBODY, RECEIVES, RECEIVES, "process solver; running", RECEIVES);
}

static void test_ranks_that_somebody_holds(void **state)
{
    (void)state;
    EXPECT("rank 1 is stopped (SIGSTOP)", BARRIER, "/x/t.py:4 barrier; stopped (SIGSTOP)");
    EXPECT("ranks 1-2 are stopped (SIGSTOP)", BARRIER, "process a; stopped (SIGSTOP)",
           "process a; stopped (SIGSTOP)", "/x/t.py:6 load");
    struct places *places = places_create();
    for (int rank = 0; rank < 2; rank++) {
        add(places, rank, STACK_MAIN, BARRIER);
        add(places, rank, STACK_CHILD, rank == 1 ? "process a; stopped (SIGSTOP)" : BARRIER);
    }
    expect_of(places, "rank 1: a child process of it is stopped (SIGSTOP)");
}

#define TEST(name) cmocka_unit_test_teardown(name, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_one_and_a_quarter),
        TEST(test_no_rank_stands_out),
        TEST(test_stacks_that_cannot_be_read),
        TEST(test_mpich),
        TEST(test_open_mpi),
        TEST(test_calls_that_do_not_fit),
        TEST(test_where_they_part),
        TEST(test_a_master_and_a_worker),
        TEST(test_native_frames_of_python),
        TEST(test_the_standard_library),
        TEST(test_a_child_process),
        TEST(test_a_child_process_of_a_liar),
        TEST(test_a_data_loader),
        TEST(test_all_wait_for_their_own),
        TEST(test_system_calls),
        TEST(test_ranks_that_somebody_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
