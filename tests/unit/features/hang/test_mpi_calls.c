/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a rank waits in MPI for certain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "features/hang/mpi_wait.h"

static const struct stack_frame yields[] = {{.function = "MPI_Recv", .native = true},
                                            {"sched_yield", "libc.so.6", 0, true}};

/* A thread in a call of MPI; 0: it is elsewhere. */
static struct stack thread(uint64_t call)
{
    return (struct stack){.bare = true,
                          .doing = STACK_RUNNING,
                          .trouble = "",
                          .frames = yields,
                          .count = 2,
                          .call = call};
}

/* Where a rank is that has a thread in call 5, and another one. */
static uint64_t beside(struct stack other)
{
    struct mpi_calls calls = {.whole = true};
    const struct stack first = thread(5);
    mpi_calls_add(&calls, &first);
    mpi_calls_add(&calls, &other);
    return mpi_calls_place(&calls);
}

static uint64_t alone(struct stack stack)
{
    struct mpi_calls calls = {.whole = true};
    mpi_calls_add(&calls, &stack);
    return mpi_calls_place(&calls);
}

static void test_numbers(void **state)
{
    (void)state;
    assert_int_not_equal(alone(thread(5)), 0);
    assert_true(alone(thread(5)) == alone(thread(5)));
    assert_true(alone(thread(5)) != alone(thread(6)));
    assert_int_equal(alone(thread(0)), 0);
    assert_int_equal(mpi_calls_place(&(struct mpi_calls){.whole = true}), 0);
}

/* Each thread counts, and so does one that sleeps. */
static void test_threads(void **state)
{
    (void)state;
    assert_int_not_equal(beside(thread(6)), 0);
    assert_true(beside(thread(6)) != beside(thread(7)));
    for (int role = STACK_MAIN; role < STACK_ROLES; role++) {
        struct stack stack = thread(0);
        stack.role = (enum stack_role)role;
        assert_int_equal(beside(stack), 0);
        stack.doing = "calls accept";
        assert_int_equal(beside(stack), 0);
        stack.mpi_helper = true;
        assert_true(beside(stack) == alone(thread(5)));
    }
}

/* A rank that is not read to the end may do anything. */
static void test_what_is_missing(void **state)
{
    (void)state;
    struct mpi_calls calls = {.whole = false};
    const struct stack first = thread(5);
    mpi_calls_add(&calls, &first);
    assert_int_equal(mpi_calls_place(&calls), 0);
    struct stack other = thread(6);
    other.trouble = "its memory cannot be read";
    assert_int_equal(beside(other), 0);
    other = thread(6);
    other.bare = false;
    assert_int_equal(beside(other), 0);
    other = thread(6);
    other.held = true;
    assert_int_equal(beside(other), 0);
}

static void test_a_shell(void **state)
{
    (void)state;
    struct stack shell = thread(0);
    shell.doing = "calls wait4, waits in do_wait";
    assert_int_equal(alone(shell), 0);
    assert_true(beside(shell) == alone(thread(5)));
    shell.doing = STACK_RUNNING;
    assert_int_equal(beside(shell), 0);
}

static struct stack in(const char *function, const char *doing, struct stack_frame *frame)
{
    struct stack stack = thread(5);
    *frame = (struct stack_frame){function, "libc.so.6", 0, true};
    stack.frames = frame;
    stack.count = 1;
    stack.doing = doing;
    return stack;
}

static void test_data_that_moves(void **state)
{
    (void)state;
    static const char *const moves[] = {"__memmove_avx_unaligned_erms", "__libc_send", "recvmsg",
                                        "process_vm_readv", "+0x18f2c0"};
    static const char *const waits[] = {"__sched_yield", "epoll_wait", "__poll",
                                        "pthread_mutex_lock"};
    struct stack_frame frame;
    for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
        assert_int_equal(alone(in(moves[i], STACK_RUNNING, &frame)), 0);
        assert_int_not_equal(alone(in(moves[i], "calls recvmsg", &frame)), 0);
    }
    for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++)
        assert_int_not_equal(alone(in(waits[i], STACK_RUNNING, &frame)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),         cmocka_unit_test(test_threads),
        cmocka_unit_test(test_what_is_missing), cmocka_unit_test(test_a_shell),
        cmocka_unit_test(test_data_that_moves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
