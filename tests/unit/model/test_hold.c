/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/net/flow.h"

/* Nothing else happens, or little: at once. */
static void test_a_prompt(void **state)
{
    (void)state;
    struct line_hold hold = {0};
    assert_int_equal(hold_due_ms(&hold, 5000), 5000 + HOLD_MS);
    hold_passed(&hold, 6, 5000);
    for (int64_t now = 5000; now < 6000; now += 10)
        hold_passed(&hold, 10000, now); /* 200 kB in 200 ms */
    hold_woke(&hold, 5000 + HOLD_MS, 5000 + HOLD_MS);
    assert_int_equal(hold_due_ms(&hold, 5000), 5000 + HOLD_MS);
}

/* Somebody writes without end: the prompt is late, but it comes. */
static void test_a_prompt_beside_a_busy_worker(void **state)
{
    (void)state;
    struct line_hold hold = {0};
    int64_t since = 5000, now = since;
    while (hold_due_ms(&hold, since) > now || now == since) {
        hold_passed(&hold, 64 << 10, now);
        now += 10;
        assert_true(now <= since + HOLD_MOST_MS);
    }
    assert_int_equal(now, since + HOLD_MOST_MS);
}

/* It becomes quiet before that: HOLD_MS later. */
static void test_the_storm_is_over(void **state)
{
    (void)state;
    struct line_hold hold = {0};
    for (int64_t now = 5000; now <= 5700; now += 10)
        hold_passed(&hold, 64 << 10, now);
    assert_int_equal(hold_due_ms(&hold, 5650), 5700 + HOLD_MS);
    assert_int_equal(hold_due_ms(&hold, 5000), 5700 + HOLD_MS);
    assert_int_equal(hold_due_ms(&hold, 6000), 6000 + HOLD_MS);
    hold_passed(&hold, 1000, 6000); /* counted anew */
    assert_int_equal(hold_due_ms(&hold, 5900), 5900 + HOLD_MS);
}

/* Who could not look in time does not know what the worker would have written meanwhile. */
static void test_no_processor(void **state)
{
    (void)state;
    struct line_hold hold = {0};
    int64_t due = hold_due_ms(&hold, 5000);
    hold_woke(&hold, due, due + HOLD_LATE_MS);
    assert_int_equal(hold_due_ms(&hold, 5000), due);
    hold_woke(&hold, due, due + HOLD_LATE_MS + 1);
    assert_int_equal(hold_due_ms(&hold, 5000), due + HOLD_LATE_MS + 1 + HOLD_MS);
    hold_woke(&hold, due, due + 60000);
    assert_int_equal(hold_due_ms(&hold, 5000), 5000 + HOLD_MOST_MS);
}

static void test_a_slow_driver(void **state)
{
    (void)state;
    struct line_hold hold = {0};
    hold_blocked(&hold, 5100);
    assert_int_equal(hold_due_ms(&hold, 5000), 5100 + HOLD_MS);
    hold_blocked(&hold, 9000);
    assert_int_equal(hold_due_ms(&hold, 5000), 5000 + HOLD_MOST_MS);
    assert_int_equal(hold_due_ms(&hold, 9500), 9500 + HOLD_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_prompt),
        cmocka_unit_test(test_a_prompt_beside_a_busy_worker),
        cmocka_unit_test(test_the_storm_is_over),
        cmocka_unit_test(test_no_processor),
        cmocka_unit_test(test_a_slow_driver),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
