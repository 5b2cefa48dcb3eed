/* SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "node/cgroup.h"
#include "node/room_test.h"

static void test_records(void **state)
{
    (void)state;
    static const struct {
        const char *record;
        pid_t victim;
    } cases[] = {{"3,1234,99,-;Out of memory: Killed process 4711 (python3) total-vm:1kB", 4711},
                 {"3,1,2,-;Memory cgroup out of memory: Killed process 7 (a b) total-vm", 7},
                 {"6,1,2,-;oom_reaper: reaped process 4711 (python3)", -1},
                 {"Killed process ", -1},
                 {"Killed process -4", -1},
                 {"Killed process 99999999999999999999", -1},
                 {"Killed process 0 (x)", -1},
                 {"", -1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(oom_victim_in(cases[i].record), cases[i].victim);
}

/* Without an out-of-memory kill in between the verdict about a pid is "no" (or, when the machine
 * runs out of memory just now, "possible"; never certain). */
static void test_nothing_happened(void **state)
{
    (void)state;
    struct oom_watch *watch = oom_watch_create();
    enum oom_verdict verdict = oom_watch_verdict(watch, getpid());
    assert_int_not_equal(verdict, OOM_CERTAIN);
    oom_watch_destroy(watch);
    oom_watch_destroy(NULL);
}

/* 0: as it should be; 1: not; 2: we may not make the namespace */
static int ask_in_a_container(void)
{
    if (unshare(CLONE_NEWPID) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0)
        return 2;
    pid_t child = fork();
    if (child == 0)
        _exit(oom_log_has_our_pids());
    int status = 0;
    bool ended = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status);
    return ended ? WEXITSTATUS(status) : 1;
}

/* Only the first pid namespace shows the kernel's own threads. */
static void test_no_container(void **state)
{
    (void)state;
    char name[32] = "";
    FILE *file = fopen("/proc/2/comm", "re");
    if (file == NULL || fgets(name, sizeof(name), file) == NULL || strcmp(name, "kthreadd\n") != 0)
        skip();
    fclose(file);
    assert_true(oom_log_has_our_pids());
}

/* There, the pids of the kernel's log are not ours. */
static void test_a_container(void **state)
{
    (void)state;
    pid_t child = fork();
    assert_int_not_equal(child, -1);
    if (child == 0)
        _exit(ask_in_a_container());
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 2)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records),
        cmocka_unit_test(test_nothing_happened),
        cmocka_unit_test(test_no_container),
        cmocka_unit_test(test_a_container),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
