/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "node/cgroup.h"

static void assert_path(const char *text, const char *controller, const char *expected)
{
    char *path = cgroup_path_in(text, controller);
    if (expected == NULL)
        assert_null(path);
    else
        assert_string_equal(path, expected);
    free(path);
}

static void test_paths(void **state)
{
    (void)state;
    static const char mixed[] = "12:cpu,cpuacct:/user.slice\n4:memory:/job:7/x\n"
                                "1:name=systemd:/s\n0::/unified/here\n";
    assert_path(mixed, "memory", "/job:7/x");
    assert_path(mixed, "cpu", "/user.slice");
    assert_path(mixed, "cpuacct", "/user.slice");
    assert_path(mixed, "", "/unified/here");
    assert_path(mixed, "mem", NULL);
    assert_path(mixed, "pids", NULL);
    assert_path("0::/only", "", "/only");
    assert_path("0::/only", "memory", NULL);
    assert_path("", "", NULL);
    assert_path("rubbish\n\n:\n4:memory\n", "memory", NULL);
}

static void test_missing_files(void **state)
{
    (void)state;
    assert_int_equal(cgroup_memory_counter("no.such.file", "no.such.file", "oom_kill"), -1);
    assert_true(cgroup_cpu_quota() >= 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_missing_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
