/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"
#include "model/exit/verdict.h"

static void test_nothing(void **state)
{
    (void)state;
    struct exit_outside outside = {.launcher = {.status = 0}};
    assert_false(exit_outside_ends(&outside));
    exit_outside_interrupted(&outside, 0, 5);
    assert_false(exit_outside_ends(&outside));
    exit_outside_clear(&outside);
}

static void test_the_first_failure_stays(void **state)
{
    (void)state;
    struct exit_outside outside = {.launcher = {.status = 0}};
    struct verdict verdict;
    exit_outside_failed(&outside, STATUS_TIMEOUT, 10, "too long");
    exit_outside_failed(&outside, STATUS_START_TIMEOUT, 5, "not up");
    assert_true(exit_outside_ends(&outside));
    assert_int_equal(outside.launcher.when_ns, 10);
    exit_outside_blame_launcher(&outside, &verdict);
    assert_int_equal(verdict.status, STATUS_TIMEOUT);
    assert_int_equal(verdict.cause, CAUSE_TIMEOUT);
    assert_int_equal(verdict.seat, -1);
    assert_int_equal(verdict.node, -1);
    assert_string_equal(verdict.explanation, "too long");
    exit_outside_clear(&outside);
    assert_false(exit_outside_ends(&outside));
}

static void test_what_is_no_status_becomes_the_launchers(void **state)
{
    (void)state;
    static const int wrong[] = {0, -1, 256, 1000};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct exit_outside outside = {.launcher = {.status = 0}};
        struct verdict verdict;
        exit_outside_failed(&outside, wrong[i], 1, NULL);
        exit_outside_blame_launcher(&outside, &verdict);
        assert_int_equal(verdict.status, STATUS_LAUNCHER);
        assert_int_equal(verdict.cause, CAUSE_LAUNCHER);
        assert_string_equal(verdict.explanation, "the launcher failed");
        exit_outside_clear(&outside);
    }
    struct exit_outside highest = {.launcher = {.status = 0}};
    exit_outside_failed(&highest, 255, 1, "x");
    assert_int_equal(highest.launcher.status, 255);
    exit_outside_clear(&highest);
}

static void test_the_first_signal_stays(void **state)
{
    (void)state;
    struct exit_outside outside = {.launcher = {.status = 0}};
    struct verdict verdict;
    exit_outside_interrupted(&outside, SIGINT, 7);
    exit_outside_interrupted(&outside, SIGTERM, 3);
    assert_true(exit_outside_ends(&outside));
    assert_int_equal(outside.interrupted.signal, SIGINT);
    assert_int_equal(outside.interrupted.when_ns, 7);
    exit_outside_blame_signal(outside.interrupted.signal, &verdict);
    assert_int_equal(verdict.status, 128 + SIGINT);
    assert_int_equal(verdict.cause, CAUSE_INTERRUPTED);
    assert_non_null(strstr(verdict.explanation, "SIGINT"));
    exit_outside_clear(&outside);
}

/* A request to stop has the effect of a signal, but nobody sent one. */
static void test_a_request_to_stop(void **state)
{
    (void)state;
    struct exit_outside outside = {.launcher = {.status = 0}};
    struct verdict verdict;
    exit_outside_stopped(&outside, SIGINT, 7, "stopped by 'hvdrun stop' (user root, 18:08:27)");
    exit_outside_interrupted(&outside, SIGTERM, 8);
    exit_outside_stopped(&outside, SIGINT, 9, "stopped once more");
    exit_outside_blame_interruption(&outside, &verdict);
    assert_int_equal(verdict.status, 128 + SIGINT);
    assert_int_equal(verdict.cause, CAUSE_STOPPED);
    assert_string_equal(verdict.explanation, "stopped by 'hvdrun stop' (user root, 18:08:27)");
    exit_outside_clear(&outside);

    exit_outside_interrupted(&outside, SIGTERM, 8);
    exit_outside_stopped(&outside, SIGINT, 9, "stopped after that");
    exit_outside_blame_interruption(&outside, &verdict);
    assert_int_equal(verdict.cause, CAUSE_INTERRUPTED);
    assert_string_equal(verdict.explanation, "interrupted (SIGTERM)");
    exit_outside_clear(&outside);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_the_first_failure_stays),
        cmocka_unit_test(test_what_is_no_status_becomes_the_launchers),
        cmocka_unit_test(test_the_first_signal_stays),
        cmocka_unit_test(test_a_request_to_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
