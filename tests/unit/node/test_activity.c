/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "node/activity.h"

/* What this process does, and what a child of it did, counts. */
static void test_own_use(void **state)
{
    (void)state;
    struct activity before, after;
    char bytes[4096];
    int ends[2];
    assert_true(activity_read(getpid(), &before));
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 16; i++) {
            memset(bytes, i, sizeof(bytes));
            if (write(ends[1], bytes, sizeof(bytes)) < 0)
                _exit(1);
        }
        int64_t until = clock_mono_ms() + 30000;
        struct activity own = {.cpu_us = 0};
        while (own.cpu_us < 50000 && clock_mono_ms() < until)
            activity_read(getpid(), &own);
        _exit(0);
    }
    for (int i = 0; i < 16; i++)
        assert_int_equal(read(ends[0], bytes, sizeof(bytes)), (ssize_t)sizeof(bytes));
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(activity_read(getpid(), &after));
    assert_true(after.cpu_us >= before.cpu_us + 50000);
    assert_true(after.io_bytes >= before.io_bytes + 2 * 16 * sizeof(bytes));
    assert_true(after.faults > before.faults);
    assert_true(after.waits > before.waits);
    assert_false(after.debugged);
    close(ends[0]);
    close(ends[1]);
}

static void test_new_memory(void **state)
{
    (void)state;
    struct activity before, after;
    size_t size = (size_t)8 << 20;
    assert_true(activity_read(getpid(), &before));
    char *bytes = mem_alloc(size);
    for (size_t i = 0; i < size; i += 4096)
        ((volatile char *)bytes)[i] = 1;
    assert_true(activity_read(getpid(), &after));
    assert_true(after.faults >= before.faults + 2); /* with huge pages, only a few */
    free(bytes);
}

static void test_a_debugger(void **state)
{
    (void)state;
    struct activity usage;
    pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, WUNTRACED), child);
    assert_true(activity_read(child, &usage));
    assert_true(usage.debugged);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_false(activity_read(child, &usage));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_use),
        cmocka_unit_test(test_new_memory),
        cmocka_unit_test(test_a_debugger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
