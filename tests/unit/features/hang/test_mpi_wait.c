/* SPDX-License-Identifier: Apache-2.0 */
/* Whether all ranks wait in MPI. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "features/hang/mpi_wait.h"

static struct stack_frame in(const char *function, const char *file)
{
    return (struct stack_frame){.function = function, .file = file, .native = true};
}

static uint64_t place(const char *caller, const char *function, const char *file)
{
    const struct stack_frame frames[] = {in("main", "train"), in(caller, "train"),
                                         in(function, file), in("poll", "/lib/libc.so.6")};
    struct stack stack = {.role = STACK_MAIN, .doing = "", .frames = frames, .count = 4};
    return mpi_wait_place(&stack);
}

static void test_places(void **state)
{
    (void)state;
    const char *library = "/usr/lib/libmpi.so.40";
    assert_int_not_equal(place("step", "PMPI_Barrier", library), 0);
    assert_int_equal(place("step", "MPI_Barrier", "train"), place("step", "MPI_Barrier", "train"));
    assert_int_not_equal(place("step", "mpi_barrier_", "/usr/lib/libmpi_mpifh.so.40"), 0);
    assert_int_not_equal(place("step", "MPI_Barrier", library),
                         place("end", "MPI_Barrier", library));
    assert_int_not_equal(place("step", "MPI_Barrier", library),
                         place("step", "MPI_Bcast", library));
}

static void test_places_outside(void **state)
{
    (void)state;
    const char *library = "/usr/lib/libmpi.so.40";
    assert_int_equal(place("step", "compute", "train"), 0);
    assert_int_equal(place("step", "mpi_solve", "train"), 0);
    assert_int_equal(place("step", "PMPI_File_write_all", library), 0);
    assert_int_equal(place("step", "mpi_file_write_", library), 0);
    assert_int_equal(place("step", "MPI_Comm_accept", library), 0);
    assert_int_equal(place("step", "MPI_Comm_connect", library), 0);
    assert_int_equal(place("step", "MPI_Solve", "train"), 0);
    assert_int_equal(place("step", "MPI_Iprobe", library), 0); /* these poll */
    assert_int_equal(place("step", "MPI_Test", library), 0);
    const struct stack_frame frames[] = {in("main", "train"), in("MPI_Reduce", library),
                                         in("sum", "train")}; /* an MPI_Op */
    assert_int_equal(mpi_wait_place(&(struct stack){.frames = frames, .count = 3}), 0);
}

static struct mpi_wait_rank rank_of(enum stack_role second, const char *function, const char *file,
                                    const char *doing)
{
    const struct stack_frame wait = in("MPI_Barrier", "libmpi.so.40"), other = in(function, file);
    const struct stack main = {.role = STACK_MAIN, .doing = "running", .frames = &wait, .count = 1};
    const struct stack stack = {.role = second, .doing = doing, .frames = &other, .count = 1};
    struct mpi_wait_rank rank = {.runs = true};
    mpi_wait_add(&rank, &main);
    mpi_wait_add(&rank, &stack);
    return rank;
}

static void test_other_threads(void **state)
{
    (void)state;
    struct mpi_wait_rank helped = {.runs = true};
    mpi_wait_add(&helped,
                 &(struct stack){.role = STACK_OTHER, .doing = STACK_RUNNING, .mpi_helper = true});
    assert_false(helped.works);
    assert_false(rank_of(STACK_OTHER, "load", "train", "calls read").works);
    assert_true(rank_of(STACK_OTHER, "load", "train", "running").works);
    assert_true(rank_of(STACK_OTHER, "gemm", "libblas.so.3", "running").works);
    assert_true(rank_of(STACK_CHILD, "load", "train", "running").works);
    struct mpi_wait_rank stopped = {.runs = true};
    mpi_wait_add(&stopped, &(struct stack){.role = STACK_MAIN, .doing = "stopped", .held = true});
    assert_true(stopped.works);
}

/* The program may be below a shell. */
static void test_child_processes(void **state)
{
    (void)state;
    const struct stack_frame shell = in("wait4", "libc.so.6"),
                             wait = in("MPI_Recv", "libmpi.so.40");
    struct stack main = {.role = STACK_MAIN, .doing = "calls wait4", .frames = &shell, .count = 1};
    struct stack child = {.role = STACK_CHILD, .doing = "running", .frames = &wait, .count = 1};
    struct mpi_wait_rank rank = {.runs = true};
    mpi_wait_add(&rank, &main);
    assert_int_equal(rank.place, 0);
    mpi_wait_add(&rank, &child);
    assert_int_not_equal(rank.place, 0);
    assert_false(rank.works);
}

static uint64_t numbered(const char *function, uint64_t call)
{
    const struct stack_frame frames[] = {in("main", "train"), in(function, "libmpi.so.40")};
    struct mpi_wait_rank rank = {.runs = true};
    mpi_wait_add(&rank,
                 &(struct stack){.doing = "running", .frames = frames, .count = 2, .call = call});
    return rank.place;
}

static void test_numbers(void **state)
{
    (void)state;
    assert_int_not_equal(numbered("MPI_Recv", 5), 0);
    assert_true(numbered("MPI_Recv", 5) == numbered("MPI_Recv", 5));
    assert_true(numbered("MPI_Recv", 5) != numbered("MPI_Recv", 6));
    assert_int_equal(numbered("MPI_Test", 5), 0);
}

static void test_looks(void **state)
{
    (void)state;
    const struct mpi_wait_rank in_mpi = {.runs = true, .place = 5}, gone = {.runs = false};
    const struct mpi_wait_rank none[2] = {gone, gone}, all[2] = {in_mpi, gone};
    struct mpi_wait_rank other[2] = {in_mpi, gone};
    assert_int_equal(mpi_wait_looks(none, all, 2, 0), 1);
    assert_int_equal(mpi_wait_looks(all, other, 2, 1), 2);
    other[0].place = 8;
    assert_int_equal(mpi_wait_looks(all, other, 2, 5), 1);
    other[0] = in_mpi;
    other[0].output = 1;
    assert_int_equal(mpi_wait_looks(all, other, 2, 5), 1);
    other[0] = in_mpi;
    other[0].works = true;
    assert_int_equal(mpi_wait_looks(all, other, 2, 5), 0);
    other[0] = in_mpi;
    other[1] = in_mpi;
    assert_int_equal(mpi_wait_looks(all, other, 2, 5), 1);
    other[1].place = 0;
    assert_int_equal(mpi_wait_looks(all, other, 2, 5), 0);
    assert_int_equal(mpi_wait_looks(none, none, 2, 5), 0);
}

/* Surely in call `place`. */
static struct mpi_wait_rank sure(uint64_t place)
{
    return (struct mpi_wait_rank){.runs = true, .calls = {.place = place, .whole = true}};
}

static void test_sure_looks(void **state)
{
    (void)state;
    const struct mpi_wait_rank gone = {.runs = false};
    const struct mpi_wait_rank none[2] = {gone, gone}, all[2] = {sure(5), sure(7)};
    struct mpi_wait_rank now[2] = {sure(5), sure(7)};
    assert_int_equal(mpi_wait_sure_looks(none, now, 2, 0), 1);
    assert_int_equal(mpi_wait_sure_looks(all, now, 2, 1), 2);
    assert_int_equal(mpi_wait_sure_looks(all, now, 2, 30), 31);
    now[1].calls.place = 8;
    assert_int_equal(mpi_wait_sure_looks(all, now, 2, 30), 1);
    now[1].calls.place = 0; /* it computes, sleeps, or waits for another job */
    assert_int_equal(mpi_wait_sure_looks(all, now, 2, 30), 0);
    now[1] = sure(7);
    now[1].calls.unsure = true; /* another thread computes */
    assert_int_equal(mpi_wait_sure_looks(all, now, 2, 30), 0);
    now[1] = gone;
    assert_int_equal(mpi_wait_sure_looks(all, now, 2, 30), 1);
    const struct mpi_wait_rank one[2] = {sure(5), gone};
    assert_int_equal(mpi_wait_sure_looks(one, now, 2, 30), 31);
    now[1] = sure(7); /* another one has come */
    assert_int_equal(mpi_wait_sure_looks(one, now, 2, 30), 1);
    struct mpi_wait_rank ended[2] = {gone, gone};
    assert_int_equal(mpi_wait_sure_looks(none, ended, 2, 30), 0);
}

/* New memory, a file or a device may keep a thread for as long as they like. */
static void test_other_waits(void **state)
{
    (void)state;
    static const char *const others[] = {"",
                                         "sleeping",
                                         "waits in handle_userfault",
                                         "calls read",
                                         "calls read, waits in n_tty_read",
                                         "calls pread64",
                                         "calls pread64, waits in pipe_read",
                                         "calls poll on nfs4",
                                         "calls pollute",
                                         "calls futex_waitv",
                                         "calls readahead, waits in pipe_read",
                                         "in uninterruptible wait"};
    static const char *const waits[] = {STACK_RUNNING,
                                        "calls poll, waits in do_sys_poll",
                                        "calls futex",
                                        "calls epoll_wait",
                                        "calls epoll_pwait2",
                                        "calls read, waits in unix_stream_read_generic",
                                        "calls readv, waits in pipe_read",
                                        "waits in hrtimer_nanosleep"};
    const struct stack_frame frames[] = {in("main", "train"), in("MPI_Finalize", "libmpi.so")};
    struct stack stack = {.bare = true, .trouble = "", .call = 5, .frames = frames, .count = 2};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        struct mpi_wait_rank rank = {.runs = true, .calls.whole = true};
        stack.doing = others[i];
        mpi_wait_add(&rank, &stack);
        assert_int_not_equal(mpi_calls_place(&rank.calls), 0); /* as --hang-timeout counts it */
        assert_int_equal(mpi_wait_sure_looks(&rank, &rank, 1, 30), 0);
    }
    for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
        struct mpi_wait_rank rank = {.runs = true, .calls.whole = true};
        stack.doing = waits[i];
        mpi_wait_add(&rank, &stack);
        rank.spins = false;
        assert_int_equal(mpi_wait_sure_looks(&rank, &rank, 1, 30), 31);
    }
}

/* One long call may still get its data. */
static void test_data_of_a_sure_call(void **state)
{
    (void)state;
    const struct mpi_wait_rank before = sure(5);
    struct mpi_wait_rank now = sure(5);
    now.data_bytes = MPI_WAIT_DATA_BYTES - 1;
    assert_int_equal(mpi_wait_sure_looks(&before, &now, 1, 30), 31);
    now.data_bytes = MPI_WAIT_DATA_BYTES;
    assert_int_equal(mpi_wait_sure_looks(&before, &now, 1, 30), 1);
    now = sure(5);
    now.output = 1;
    assert_int_equal(mpi_wait_sure_looks(&before, &now, 1, 30), 1);
}

/* It gets no processor; or there is a reason that looks do not show. */
static void test_ranks_that_may_go_on(void **state)
{
    (void)state;
    const struct mpi_wait_rank before = sure(5);
    struct mpi_wait_rank now = sure(5);
    int rank = -1;
    now.spins = true;
    assert_int_equal(mpi_wait_sure_looks(&before, &now, 1, 30), 30);
    now.run_ns = 1;
    assert_int_equal(mpi_wait_sure_looks(&before, &now, 1, 30), 31);
    assert_null(mpi_wait_doubt(&now, 1, &rank));
    now.doubt = "it has a timer of its own";
    assert_int_equal(mpi_wait_sure_looks(&before, &now, 1, 30), 0);
    struct mpi_wait_rank ranks[3] = {{.doubt = "it has ended"}, sure(5), now};
    assert_string_equal(mpi_wait_doubt(ranks, 3, &rank), now.doubt);
    assert_int_equal(rank, 2);
    ranks[1].calls.whole = false;
    assert_non_null(mpi_wait_doubt(ranks, 3, &rank));
    assert_int_equal(rank, 1);
}

static void test_other_jobs(void **state)
{
    (void)state;
    const struct stack_frame accepts[] = {in("main", "train"), in("MPI_Comm_accept", "libmpi.so")},
                             leaves[] = {in("main", "train"),
                                         in("MPI_Comm_disconnect", "libmpi.so")};
    struct stack stack = {
        .bare = true, .trouble = "", .call = 5, .doing = "calls poll", .count = 2};
    struct mpi_wait_rank rank = {.runs = true};
    stack.frames = leaves;
    mpi_wait_add(&rank, &stack);
    assert_true(rank.elsewhere && !rank.meets);
    stack.frames = accepts;
    mpi_wait_add(&rank, &stack);
    assert_true(rank.meets);
}

/* A look that misses a thread shows neither that it stays nor that it goes on. */
static void test_looks_that_miss_a_thread(void **state)
{
    (void)state;
    const struct mpi_wait_rank all[2] = {sure(5), sure(7)};
    struct mpi_wait_rank missed[2] = {sure(5), {.runs = true}}, now[2] = {sure(5), sure(7)};
    missed[1].calls.unsure = true;
    missed[1].elsewhere = true; /* another thread */
    assert_int_equal(mpi_wait_sure_looks(all, missed, 2, 30), 0);
    missed[1].elsewhere = false;
    assert_int_equal(mpi_wait_sure_looks(all, missed, 2, 30), 30);
    assert_int_equal(mpi_wait_sure_looks(missed, now, 2, 30), 31);
    now[1] = sure(8);
    assert_int_equal(mpi_wait_sure_looks(missed, now, 2, 30), 1);
    struct mpi_wait_rank first[2] = {sure(5), {.runs = true}}, second[2] = {sure(5), sure(7)};
    const struct mpi_wait_rank none[2] = {{.runs = true}, {.runs = true}};
    assert_int_equal(mpi_wait_sure_looks(none, first, 2, 0), 0);
    assert_int_equal(mpi_wait_sure_looks(first, second, 2, 0), 1);
}

/* A call may have begun after the first look at it, which sees two that look alike as one. */
static void test_time_that_is_sure(void **state)
{
    (void)state;
    for (int looks = 0; looks <= 2; looks++)
        assert_int_equal(mpi_wait_sure_ms(looks), 0);
    assert_int_equal(mpi_wait_sure_ms(3), MPI_WAIT_PERIOD_MS);
    assert_int_equal(mpi_wait_sure_ms(MPI_WAIT_SURE_LOOKS), 60000);
}

static void test_the_name_of_a_call(void **state)
{
    (void)state;
    const struct stack_frame shell = in("wait4", "libc.so.6");
    const struct stack_frame call[] = {in("main", "train"), in("PMPI_Recv", "libmpi.so.40"),
                                       in("MPI_Wait", "libmpi.so.40")};
    struct mpi_wait_rank rank = {.runs = true};
    mpi_wait_add(&rank, &(struct stack){.doing = "", .frames = &shell, .count = 1});
    assert_null(rank.call);
    mpi_wait_add(&rank, &(struct stack){.doing = "", .frames = call, .count = 3});
    assert_string_equal(rank.call, "MPI_Recv");
}

static void expect_text(const struct mpi_wait_rank *ranks, int count, const char *expected)
{
    struct buf text AUTO_BUF = BUF_INIT(1024);
    mpi_wait_text(ranks, count, &text);
    assert_string_equal(buf_text(&text), expected);
}

static void test_texts(void **state)
{
    (void)state;
    struct mpi_wait_rank ranks[7] = {{.call = NULL}};
    static const char *const calls[7] = {"MPI_Barrier", "MPI_Recv", "MPI_Barrier", "MPI_Barrier",
                                         "MPI_Recv",    "MPI_Wait", "MPI_Bcast"};
    for (int i = 0; i < 7; i++)
        ranks[i] = (struct mpi_wait_rank){.runs = i != 1, .call = calls[i]};
    expect_text(ranks, 1, "rank 0 in MPI_Barrier");
    expect_text(ranks, 5, "ranks 0,2-3 in MPI_Barrier, rank 4 in MPI_Recv");
    expect_text(ranks, 7,
                "ranks 0,2-3 in MPI_Barrier, rank 4 in MPI_Recv, rank 5 in MPI_Wait, ...");
    ranks[0].call = NULL;
    expect_text(ranks, 2, "");
}

static void test_pauses(void **state)
{
    (void)state;
    assert_int_equal(mpi_wait_next_ms(2, MPI_WAIT_PERIOD_MAX_MS), MPI_WAIT_PERIOD_MS);
    assert_int_equal(mpi_wait_next_ms(1, MPI_WAIT_PERIOD_MS), 2 * MPI_WAIT_PERIOD_MS);
    assert_int_equal(mpi_wait_next_ms(0, MPI_WAIT_PERIOD_MS), 2 * MPI_WAIT_PERIOD_MS);
    assert_int_equal(mpi_wait_next_ms(0, MPI_WAIT_PERIOD_MAX_MS - 1), MPI_WAIT_PERIOD_MAX_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_places_outside),
        cmocka_unit_test(test_other_threads),
        cmocka_unit_test(test_child_processes),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_looks),
        cmocka_unit_test(test_pauses),
        cmocka_unit_test(test_sure_looks),
        cmocka_unit_test(test_data_of_a_sure_call),
        cmocka_unit_test(test_looks_that_miss_a_thread),
        cmocka_unit_test(test_ranks_that_may_go_on),
        cmocka_unit_test(test_other_jobs),
        cmocka_unit_test(test_other_waits),
        cmocka_unit_test(test_time_that_is_sure),
        cmocka_unit_test(test_the_name_of_a_call),
        cmocka_unit_test(test_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
