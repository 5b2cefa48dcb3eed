/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "features/metrics/metrics.h"

static int create(void **state)
{
    *state = mem_alloc(sizeof(struct history));
    return 0;
}

static int destroy(void **state)
{
    free(*state);
    return 0;
}

static void add(struct history *history, int64_t when_ms)
{
    const struct history_point point = {
        .when_ms = when_ms, .progress = NAN, .cpus = (double)when_ms, .ranks = 3};
    history_add(history, &point);
}

static void expect(const struct history *history, uint64_t number, int64_t when_ms, bool after_gap)
{
    const struct history_point *point = history_point(history, number);
    assert_non_null(point);
    assert_int_equal(point->when_ms, when_ms);
    assert_int_equal(point->cpus, when_ms);
    assert_int_equal(point->ranks, 3);
    assert_true(isnan(point->progress));
    assert_int_equal(point->after_gap, after_gap);
}

static void test_points(void **state)
{
    struct history *history = *state;
    assert_int_equal(history->first, 0);
    assert_int_equal(history->next, 0);
    assert_null(history_point(history, 0));
    add(history, 1000);
    add(history, 3000);
    assert_int_equal(history->first, 0);
    assert_int_equal(history->next, 2);
    expect(history, 0, 1000, false);
    expect(history, 1, 3000, false);
    assert_null(history_point(history, 2));
}

/* A clock that stands still or goes back adds nothing. */
static void test_order(void **state)
{
    struct history *history = *state;
    add(history, 3000);
    add(history, 3000);
    add(history, 2999);
    assert_int_equal(history->next, 1);
    add(history, 3001);
    assert_int_equal(history->next, 2);
}

static void test_gap(void **state)
{
    struct history *history = *state;
    add(history, 5000);
    add(history, 5000 + HISTORY_GAP_MS);
    add(history, 5001 + 2 * HISTORY_GAP_MS);
    add(history, 5002 + 2 * HISTORY_GAP_MS);
    expect(history, 0, 5000, false);
    expect(history, 1, 5000 + HISTORY_GAP_MS, false);
    expect(history, 2, 5001 + 2 * HISTORY_GAP_MS, true);
    expect(history, 3, 5002 + 2 * HISTORY_GAP_MS, false);
}

/* Whoever adds a point whenever it is due has the whole hour, whatever the hour. */
static void test_an_hour(void **state)
{
    struct history *history = *state;
    int64_t now = 7;
    assert_int_equal(history_wait_ms(history), HISTORY_DENSE_MS);
    while (now < 7 + HISTORY_DENSE_SPAN_MS) {
        add(history, now);
        assert_int_equal(history_wait_ms(history), HISTORY_DENSE_MS);
        now += history_wait_ms(history);
    }
    for (; now <= 7 + HISTORY_SPAN_MS; now += history_wait_ms(history)) {
        add(history, now);
        assert_int_equal(history_wait_ms(history), HISTORY_PERIOD_MS);
    }
    assert_int_equal(history->first, 0);
    assert_int_equal(history->next, 757); /* both ends of the hour */
    for (int i = 0; i < 2 * HISTORY_POINTS; i++, now += history_wait_ms(history))
        add(history, now);
    uint64_t first = history->first, next = history->next;
    assert_int_equal(next, 757 + 2 * HISTORY_POINTS);
    assert_int_equal(next - first, HISTORY_SPAN_MS / HISTORY_PERIOD_MS + 1);
    assert_null(history_point(history, first - 1));
    for (uint64_t number = first; number < next; number++)
        expect(history, number, now - (int64_t)(next - number) * HISTORY_PERIOD_MS, false);
}

/* Points that come too often push out the oldest. */
static void test_overflow(void **state)
{
    struct history *history = *state;
    for (int i = 1; i <= HISTORY_POINTS; i++)
        add(history, i);
    assert_int_equal(history->first, 0);
    add(history, HISTORY_POINTS + 1);
    assert_int_equal(history->first, 1);
    assert_null(history_point(history, 0));
    expect(history, 1, 2, false);
    expect(history, HISTORY_POINTS, HISTORY_POINTS + 1, false);
}

/* After hours in which nothing was measured, nothing of the past is left. */
static void test_all_is_old(void **state)
{
    struct history *history = *state;
    add(history, 1);
    add(history, 2);
    add(history, 2 + HISTORY_SPAN_MS); /* as old as may be */
    assert_int_equal(history->first, 1);
    expect(history, 1, 2, false);
    add(history, 3 + 2 * HISTORY_SPAN_MS);
    assert_int_equal(history->first, 3);
    assert_int_equal(history->next, 4);
    expect(history, 3, 3 + 2 * HISTORY_SPAN_MS, true);
    add(history, 4 + 2 * HISTORY_SPAN_MS);
    expect(history, 4, 4 + 2 * HISTORY_SPAN_MS, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_points, create, destroy),
        cmocka_unit_test_setup_teardown(test_order, create, destroy),
        cmocka_unit_test_setup_teardown(test_gap, create, destroy),
        cmocka_unit_test_setup_teardown(test_an_hour, create, destroy),
        cmocka_unit_test_setup_teardown(test_overflow, create, destroy),
        cmocka_unit_test_setup_teardown(test_all_is_old, create, destroy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
