/* SPDX-License-Identifier: Apache-2.0 */
/* The call of MPI in which a thread is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stacks/native_test.h"

#define MPI "/usr/lib/libmpi.so.40"
#define LIBC "/lib/x86_64-linux-gnu/libc.so.6"

struct row {
    const char *function, *object;
    bool guess;
};

/* The innermost first. */
static struct native_call call_of(const struct row *rows)
{
    struct native_call call = {.count = 0};
    for (uint64_t i = 0; rows[i].object != NULL; i++) {
        const struct unwind_frame frame = {.function = rows[i].function,
                                           .object = rows[i].object,
                                           .pc = i,
                                           .certain = !rows[i].guess};
        native_call_add(&call, &frame);
    }
    return call;
}

/* The number of the frame to which the call returns; 0: none. */
static uint64_t back(const struct row *rows)
{
    const struct native_call call = call_of(rows);
    return native_call_back(&call);
}

static bool is_helper(const struct row *rows)
{
    const struct native_call call = call_of(rows);
    return native_call_is_helper(&call);
}

#define ROWS(...)          \
    (const struct row[])   \
    {                      \
        __VA_ARGS__,       \
        {                  \
            .guess = false \
        }                  \
    }
#define MAIN                                                         \
    {"main", "/x/train", false}, {"__libc_start_main", LIBC, false}, \
    {                                                                \
        "_start", "/x/train", true                                   \
    }
#define IN(function, object)    \
    {                           \
        function, object, false \
    }
#define BACK(...) back(ROWS(__VA_ARGS__, MAIN))

static void test_calls(void **state)
{
    (void)state;
    assert_int_equal(BACK(IN("PMPI_Recv", MPI)), 1);
    assert_int_equal(BACK(IN("sched_yield", LIBC), IN("wait", MPI), IN("MPI_Wait", MPI)), 3);
    assert_int_equal(BACK(IN("PMPI_Recv", MPI), IN("mpi_recv_", "/l/libmpi_mpifh.so.40")), 1);
    assert_int_equal(BACK(IN("MPI_Test", "/l/libmpich.so.12"), IN("step", "/l/libsolver.so")), 1);
    assert_int_equal(BACK(IN(NULL, MPI), IN("MPIX_Start", MPI)), 2);
    assert_int_equal(BACK(IN("poll", LIBC), IN("event_base_loop", "/l/libevent_core-2.1.so.7"),
                          IN("opal_progress", "/l/libopen-pal.so.40"),
                          IN("mca_pml_ob1_recv", "/l/openmpi/mca_pml_ob1.so"),
                          IN("PMPI_Recv", MPI)),
                     5);
}

static void test_none(void **state)
{
    (void)state;
    assert_int_equal(BACK(IN("f", "/x/train")), 0);
    assert_int_equal(BACK(IN("MPI_Recv", "/x/train")), 0); /* it may be the program's own */
    assert_int_equal(BACK(IN("mpi_solve", "/x/libmpi_solver.so")), 0);
    assert_int_equal(BACK(IN("MPI_Solve", "/x/libmpi_solver.so")), 0);
    assert_int_equal(BACK(IN("mpi_solve_", MPI)), 0);
    assert_int_equal(BACK(IN("ompi_request_wait", MPI)), 0);
    assert_int_equal(back(ROWS(IN("MPI_Recv", MPI))), 0); /* the caller is unknown */
    /* they wait for others than the ranks of the job */
    assert_int_equal(BACK(IN("PMPI_Comm_accept", MPI)), 0);
    assert_int_equal(BACK(IN("MPI_File_write_all", MPI)), 0);
}

/* An MPI_Op, also one that calls MPI, and in a library that calls none. */
static void test_code_of_others_inside(void **state)
{
    (void)state;
    assert_int_equal(BACK(IN("add", "/x/train"), IN("MPI_Reduce", MPI)), 0);
    assert_int_equal(BACK(IN("sum", "/l/libpetsc.so"), IN("MPI_Reduce", MPI)), 0);
    assert_int_equal(BACK(IN("sum", "/l/libc-numeric.so"), IN("MPI_Reduce", MPI)), 0);
    assert_int_equal(BACK(IN("add", "/l/openmpi/mca_op_avx.so"), IN("MPI_Reduce", MPI)), 0);
    assert_int_equal(BACK(IN(NULL, ""), IN("MPI_Reduce", MPI)), 0); /* generated code */
    assert_int_equal(BACK(IN("MPI_Recv", MPI), IN("add", "/x/libop.so"), IN("MPI_Reduce", MPI)), 0);
}

/* Where there is no table, the return address may be any number. */
static void test_guesses(void **state)
{
    (void)state;
    assert_int_equal(BACK({"copy", MPI, true}, IN("MPI_Recv", MPI)), 0);
    assert_int_equal(BACK({"MPI_Recv", MPI, true}), 0);
    assert_int_equal(BACK(IN("MPI_Recv", MPI), {"step", "/x/train", true}), 1);
}

static void test_helpers(void **state)
{
    (void)state;
    assert_true(
        is_helper(ROWS(IN("epoll_wait", LIBC), IN("loop", "/l/libevent_core-2.1.so.7"),
                       IN("progress_engine", "/l/libopen-pal.so.40"), IN("start_thread", LIBC))));
    assert_true(is_helper(ROWS(IN(NULL, "/l/libucs.so.0"), IN(NULL, LIBC))));
    assert_false(is_helper(ROWS(IN("poll", LIBC), IN("start_thread", LIBC))));
    assert_false(
        is_helper(ROWS(IN("accept", LIBC), IN("serve", "/x/train"), IN("start_thread", LIBC))));
    assert_false(is_helper(ROWS(IN("poll", LIBC), IN("PMPI_Recv", MPI), IN("serve", "/x/train"),
                                IN("start_thread", LIBC))));
    assert_false(
        is_helper(ROWS(IN("add", "/x/train"), IN("progress", MPI), IN("start_thread", LIBC))));
    assert_false(is_helper(ROWS(IN("MPI_Recv", MPI), IN("start_thread", LIBC))));
    assert_false(is_helper(ROWS(IN("opal_progress", "/l/libopen-pal.so.40"), MAIN)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls),   cmocka_unit_test(test_none),
        cmocka_unit_test(test_guesses), cmocka_unit_test(test_code_of_others_inside),
        cmocka_unit_test(test_helpers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
