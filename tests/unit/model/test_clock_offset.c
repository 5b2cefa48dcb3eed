/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/net/liveness.h"

#define MS ((int64_t)1000000)
#define S (1000 * MS)
#define AHEAD (5000 * S)

static void test_nothing_known(void **state)
{
    (void)state;
    struct clock_offset clock = {.measured = false};
    assert_true(clock_offset_error(&clock, 100 * S) == CLOCK_UNKNOWN);
    clock_offset_sample(&clock, 2 * S, 7 * S, 1 * S); /* cannot be */
    assert_true(clock_offset_error(&clock, 100 * S) == CLOCK_UNKNOWN);
    assert_true(clock_offset_to_ours(&clock, 7 * S) == 7 * S);
}

static void test_the_fastest_counts(void **state)
{
    (void)state;
    struct clock_offset clock = {.measured = false};
    clock_offset_sample(&clock, S, S + 20 * MS + AHEAD, S + 100 * MS); /* the way back took 80 */
    assert_true(clock_offset_error(&clock, S + 100 * MS) == 50 * MS);
    clock_offset_sample(&clock, 2 * S, 2 * S + MS + AHEAD, 2 * S + 2 * MS);
    assert_true(clock_offset_to_ours(&clock, 3 * S + AHEAD) == 3 * S);
    assert_true(clock_offset_error(&clock, 2 * S + 2 * MS) == MS);
    clock_offset_sample(&clock, 3 * S, 3 * S + AHEAD, 3 * S + 40 * MS); /* a slow one */
    assert_true(clock_offset_to_ours(&clock, 3 * S + AHEAD) == 3 * S);
}

/* Their clock is fast by 40 parts in a million; every second one asks. */
static void test_drift_over_days(void **state)
{
    (void)state;
    struct clock_offset clock = {.measured = false};
    int64_t now = 0, theirs = 0, error = 0;
    for (int i = 0; i < 2 * 86400; i++) {
        now = (int64_t)i * S;
        theirs = AHEAD + now + now / 1000000 * 40;
        int64_t way = i == 0 ? MS / 10 : MS; /* the very first was the fastest by far */
        clock_offset_sample(&clock, now - way, theirs, now + way);
        error = clock_offset_to_ours(&clock, theirs) - now;
        error = error < 0 ? -error : error;
        assert_true(error <= clock_offset_error(&clock, now + way));
    }
    assert_true(error <= 2 * MS);
}

/* The other side may say anything. */
static void test_absurd_times(void **state)
{
    (void)state;
    static const int64_t absurd[] = {INT64_MIN, INT64_MIN + 1, -1, INT64_MAX / 2, INT64_MAX};
    struct clock_offset clock = {.measured = false};
    clock_offset_sample(&clock, S, S + MS + AHEAD, S + 2 * MS);
    for (size_t i = 0; i < sizeof(absurd) / sizeof(absurd[0]); i++) {
        for (size_t k = 0; k < sizeof(absurd) / sizeof(absurd[0]); k++)
            clock_offset_sample(&clock, absurd[i], absurd[k], 2 * S);
        int64_t ours = clock_offset_to_ours(&clock, absurd[i]);
        assert_true(ours > INT64_MIN / 4 && ours < INT64_MAX / 4);
    }
    assert_true(clock_offset_to_ours(&clock, 3 * S + AHEAD) == 3 * S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_known),
        cmocka_unit_test(test_the_fastest_counts),
        cmocka_unit_test(test_drift_over_days),
        cmocka_unit_test(test_absurd_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
