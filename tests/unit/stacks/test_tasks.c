/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc says of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stacks/tasks.h"

static void test_a_thread_that_ends(void **state)
{
    (void)state;
    char before[17] = "";
    siginfo_t info;
    assert_int_equal(prctl(PR_GET_NAME, before), 0);
    assert_int_equal(prctl(PR_SET_NAME, "a) Z 1 2 3 4"), 0);
    assert_false(task_is_ending(getpid(), getpid()));
    assert_int_equal(prctl(PR_SET_NAME, before), 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_true(task_is_ending(pid, pid));
    waitpid(pid, NULL, 0);
    assert_true(task_is_ending(pid, pid));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_thread_that_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
