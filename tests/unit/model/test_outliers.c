/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/usage/outliers.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const struct outlier_rule rule = {.floor = 10, .share = 0.5};

static void check(const double *values, size_t count, const int *expected)
{
    int found[16];
    outliers_find(values, count, &rule, found);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(found[i], expected[i]);
}

static void test_one_of_many(void **state)
{
    (void)state;
    const double less[] = {100, 99, 101, 0, 100, 98};
    const int first[] = {0, 0, 0, -1, 0, 0};
    check(less, COUNT(less), first);
    const double more[] = {100, 99, 101, 1600, 100, 98};
    const int second[] = {0, 0, 0, 1, 0, 0};
    check(more, COUNT(more), second);
}

static void test_limits(void **state)
{
    (void)state;
    const double share[] = {100, 100, 100, 150, 50}; /* at the limit, not beyond it */
    const int none[] = {0, 0, 0, 0, 0};
    check(share, COUNT(share), none);
    const double beyond[] = {100, 100, 100, 150.5, 49.5};
    const int both[] = {0, 0, 0, 1, -1};
    check(beyond, COUNT(beyond), both);
    const double floor[] = {1, 1, 1, 11, 1}; /* many times the others, and still next to nothing */
    check(floor, COUNT(floor), none);
    const double above[] = {1, 1, 1, 11.5, 1};
    const int one[] = {0, 0, 0, 1, 0};
    check(above, COUNT(above), one);
}

/* Where all differ, none does: the half nearest to 100 is up to 60 away from it. */
static void test_spread(void **state)
{
    (void)state;
    const double wide[] = {20, 40, 100, 160, 200, 290};
    const int none[] = {0, 0, 0, 0, 0, 0};
    check(wide, COUNT(wide), none);
}

static void test_too_few(void **state)
{
    (void)state;
    const double two[] = {0, 1000};
    const int none[] = {0, 0, 0};
    check(two, COUNT(two), none);
    const double unknown[] = {0, 1000, NAN};
    check(unknown, COUNT(unknown), none);
    check(two, 0, none);
}

static void test_unknown(void **state)
{
    (void)state;
    const double values[] = {100, NAN, 100, 100, 0};
    const int expected[] = {0, 0, 0, 0, -1};
    check(values, COUNT(values), expected);
}

static void test_median(void **state)
{
    (void)state;
    const double odd[] = {5, 1, 3}, even[] = {4, 1, NAN, 3, 2};
    assert_true(outliers_median(odd, COUNT(odd)) == 3);
    assert_true(outliers_median(even, COUNT(even)) == 2.5);
    assert_true(isnan(outliers_median(odd, 0)));
    const double huge[] = {1.7e308, 1.7e308};
    assert_true(isfinite(outliers_median(huge, COUNT(huge))));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_of_many), cmocka_unit_test(test_limits),
        cmocka_unit_test(test_spread),      cmocka_unit_test(test_too_few),
        cmocka_unit_test(test_unknown),     cmocka_unit_test(test_median),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
