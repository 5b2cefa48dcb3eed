/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/thread.h"

struct seen {
    sigset_t blocked;
    char name[16];
};

static void *look(void *argument)
{
    struct seen *seen = argument;
    pthread_sigmask(SIG_BLOCK, NULL, &seen->blocked);
    return argument;
}

static void test_signals_are_for_other_threads(void **state)
{
    (void)state;
    pthread_t thread;
    struct seen seen;
    void *result = NULL;
    sigset_t mask;
    assert_int_equal(thread_start(&thread, "hvd-test", look, &seen), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, &seen);
    assert_true(sigismember(&seen.blocked, SIGTERM));
    assert_true(sigismember(&seen.blocked, SIGUSR1));
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    assert_false(sigismember(&mask, SIGTERM)); /* the caller's own are as before */
}

static void *wait_for_name(void *argument)
{
    struct seen *seen = argument;
    do
        pthread_getname_np(pthread_self(), seen->name, sizeof seen->name);
    while (strncmp(seen->name, "hvd-", 4) != 0);
    return NULL;
}

static void test_long_names_are_cut(void **state)
{
    (void)state;
    pthread_t thread;
    struct seen seen = {.name = ""};
    assert_int_equal(thread_start(&thread, "hvd-set-1234567890", wait_for_name, &seen), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_string_equal(seen.name, "hvd-set-1234567");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signals_are_for_other_threads),
        cmocka_unit_test(test_long_names_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
