/* SPDX-License-Identifier: Apache-2.0 */
/* A child whose first thread has ended: no thread is held by the kernel here, but it looks so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/descendants.h"

static void *stay(void *context)
{
    (void)context;
    while (pause() < 0)
        continue;
    return NULL;
}

static pid_t start(bool ends)
{
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t thread;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (pthread_create(&thread, NULL, stay, NULL) == 0 && ends)
            pthread_exit(NULL);
        stay(NULL);
    }
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static int wait_for_status(pid_t pid)
{
    for (int i = 0; i < 2000 && held_child_status(pid) < 0; i++)
        usleep(10000);
    return held_child_status(pid);
}

static void test_one_child(void **state)
{
    (void)state;
    pid_t held = start(true), alive = start(false), zombie = fork();
    if (zombie == 0)
        _exit(3);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)zombie, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(wait_for_status(held), 0);
    assert_int_equal(held_child_status(alive), -1);
    assert_int_equal(held_child_status(zombie), -1); /* waitpid() returns for it */
    assert_int_equal(held_child_status(getpid()), -1);
    end(held);
    assert_int_equal(held_child_status(held), -1);
    end(alive);
    end(zombie);
}

/* For a while, as a process whose threads end at their own pace looks the same. */
static void test_all_children(void **state)
{
    (void)state;
    struct held_children children = {0};
    assert_false(held_children_only(&children));
    pid_t held = start(true), alive = start(false);
    assert_int_equal(wait_for_status(held), 0);
    assert_false(held_children_only(&children));
    assert_int_equal(children.since_ms, 0);
    end(alive);
    assert_false(held_children_only(&children));
    assert_int_not_equal(children.since_ms, 0);
    children.since_ms -= 5000;
    assert_true(held_children_only(&children));
    alive = start(false);
    assert_false(held_children_only(&children));
    end(alive);
    end(held);
    assert_false(held_children_only(&children));
}

static void *spin(void *context)
{
    (void)context;
    for (volatile bool go = true; go;)
        continue;
    return NULL;
}

static void test_a_thread_that_waits(void **state)
{
    (void)state;
    pid_t waits = start(false), runs = fork();
    if (runs == 0) {
        pthread_t thread;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (pthread_create(&thread, NULL, spin, NULL) == 0)
            stay(NULL);
        _exit(1);
    }
    for (int i = 0; i < 2000 && !held_child_waits(waits); i++)
        usleep(10000);
    assert_true(held_child_waits(waits));
    assert_false(held_child_waits(runs));
    end(runs);
    end(waits);
    assert_false(held_child_waits(waits));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_child),
        cmocka_unit_test(test_all_children),
        cmocka_unit_test(test_a_thread_that_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
