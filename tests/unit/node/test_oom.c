/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "node/cgroup_test.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records),
        cmocka_unit_test(test_nothing_happened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
