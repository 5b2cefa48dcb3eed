/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/exit/signal_rules.h"

static void expect(int64_t left_ms, int64_t grace_ms, int64_t workers_ms, int64_t term_ms)
{
    struct warning_times times = warning_times_share(left_ms, grace_ms);
    assert_int_equal(times.workers_ms, workers_ms);
    assert_int_equal(times.term_ms, term_ms);
}

static void test_shares(void **state)
{
    (void)state;
    expect(120000, -1, 105000, 5000);
    expect(120000, 2000, 105000, 2000);
    expect(120000, 60000, 105000, 5000);
    expect(120000, 0, 105000, 0);
    expect(20000, -1, 15000, 1666);
    expect(4, -1, 3, 0);
    expect(1, -1, 1, 0);
}

static void test_no_end_is_known(void **state)
{
    (void)state;
    expect(INT64_MAX, -1, 30000, 5000);
    expect(INT64_MAX, 2000, 2000, 2000);
    expect(INT64_MAX, 90000, 90000, 5000);
}

static void test_the_end_is_over(void **state)
{
    (void)state;
    expect(0, -1, 10000, 0);
    expect(-5000, -1, 10000, 0);
    expect(-5000, 3000, 3000, 0);
    expect(INT64_MIN, 60000, 10000, 0);
}

/* The scheduler's end is never passed, and the workers get the most of the time. */
static void test_every_length(void **state)
{
    (void)state;
    for (int64_t left = 1; left < INT64_C(1) << 50; left = left * 3 / 2 + 1) {
        struct warning_times times = warning_times_share(left, -1);
        assert_true(times.workers_ms > 0 && times.term_ms >= 0);
        assert_true(times.workers_ms + times.term_ms <= left);
        assert_true(times.workers_ms >= left - left / 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_no_end_is_known),
        cmocka_unit_test(test_the_end_is_over),
        cmocka_unit_test(test_every_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
