/* SPDX-License-Identifier: Apache-2.0 */
/* The call of MPI in which a thread is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "stacks/native_test.h"

#define MPI "/usr/lib/libmpi.so.40"
#define LIBC "/lib/x86_64-linux-gnu/libc.so.6"

struct row {
    const char *function, *object;
};

/* The innermost first. The number of the frame to which the call returns; 0: none. */
static uint64_t back(const struct row *rows)
{
    struct native_call call = {.count = 0};
    for (uint64_t i = 0; rows[i].object != NULL; i++) {
        const struct unwind_frame frame = {
            .function = rows[i].function, .object = rows[i].object, .pc = i};
        native_call_add(&call, &frame);
    }
    return native_call_back(&call);
}

#define BACK(...) back((const struct row[]){__VA_ARGS__, {NULL, NULL}})
#define MAIN                                           \
    {"main", "/x/train"}, {"__libc_start_main", LIBC}, \
    {                                                  \
        "_start", "/x/train"                           \
    }

static void test_calls(void **state)
{
    (void)state;
    assert_int_equal(BACK({"PMPI_Recv", MPI}, MAIN), 1);
    assert_int_equal(BACK({"sched_yield", LIBC}, {"wait", MPI}, {"MPI_Wait", MPI}, MAIN), 3);
    assert_int_equal(BACK({"PMPI_Recv", MPI}, {"mpi_recv_", "/l/libmpi_mpifh.so.40"}, MAIN), 2);
    assert_int_equal(BACK({"MPI_Test", "/l/libmpich.so.12"}, {"step", "/l/libsolver.so"}, MAIN), 1);
    assert_int_equal(BACK({NULL, MPI}, {"MPIX_Start", MPI}, MAIN), 2);
}

static void test_none(void **state)
{
    (void)state;
    assert_int_equal(BACK(MAIN), 0);
    assert_int_equal(BACK({"MPI_Recv", "/x/train"}, MAIN), 0); /* it may be the program's own */
    assert_int_equal(BACK({"mpi_solve", "/x/libsolver.so"}, MAIN), 0);
    assert_int_equal(BACK({"ompi_request_wait", MPI}, MAIN), 0);
    assert_int_equal(BACK({NULL, ""}, {"MPI_Reduce", MPI}, MAIN), 0); /* generated code */
    assert_int_equal(BACK({"MPI_Recv", MPI}), 0);                     /* the caller is unknown */
}

/* An MPI_Op, also one that calls MPI. */
static void test_code_of_the_caller_inside(void **state)
{
    (void)state;
    assert_int_equal(BACK({"add", "/x/train"}, {"MPI_Reduce", MPI}, MAIN), 0);
    assert_int_equal(
        BACK({"sum", "/l/libpetsc.so"}, {"MPI_Reduce", MPI}, {"VecSum", "/l/libpetsc.so"}, MAIN),
        0);
    assert_int_equal(BACK({"MPI_Recv", MPI}, {"add", "/x/train"}, {"MPI_Reduce", MPI},
                          {"f", "/l/libf.so"}, MAIN),
                     0);
}

static void test_too_many_files(void **state)
{
    (void)state;
    struct native_call call = {.count = 0};
    char names[NATIVE_CALL_FILES + 1][16];
    for (int i = 0; i <= NATIVE_CALL_FILES; i++) {
        snprintf(names[i], sizeof(names[i]), "lib%d.so", i);
        native_call_add(&call, &(struct unwind_frame){.function = "f", .object = names[i]});
    }
    native_call_add(&call, &(struct unwind_frame){.function = "MPI_Recv", .object = MPI});
    native_call_add(&call, &(struct unwind_frame){.function = "main", .object = "x", .pc = 7});
    assert_int_equal(native_call_back(&call), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_code_of_the_caller_inside),
        cmocka_unit_test(test_too_many_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
