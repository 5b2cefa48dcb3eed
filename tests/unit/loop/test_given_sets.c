/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "loop/sets.h"

static void test_each_set_is_found_once(void **state)
{
    (void)state;
    const int32_t ranks[] = {0, 2, 1, 0, 2};
    const int64_t counts[] = {2, 1, 2, 0};
    const struct given_sets given = {ranks, counts, 4};
    struct error err = ERROR_INIT;
    assert_int_equal(given_sets_check(&given, &err), 0);
    assert_ptr_equal(given_sets_first(&given, 0), ranks);
    assert_ptr_equal(given_sets_first(&given, 1), ranks + 2);
    assert_null(given_sets_first(&given, 2));
    assert_null(given_sets_first(&given, 3));
    assert_ptr_equal(given_sets_of(&given, 2), ranks + 3);
}

static void expect_refused(const int32_t *ranks, const int64_t *counts, int32_t size,
                           const char *part)
{
    struct error err = ERROR_INIT;
    const struct given_sets given = {ranks, counts, size};
    assert_int_equal(given_sets_check(&given, &err), -1);
    assert_non_null(strstr(err.text, part));
}

static void test_sets_that_differ(void **state)
{
    (void)state;
    const int32_t both[] = {0, 1, 1}, other[] = {1}, same_size[] = {0, 1, 1, 2, 1, 2};
    const int64_t two_one[] = {2, 1}, two_none[] = {2, 0}, one_none[] = {1, 0}, two[] = {2, 2, 2};
    expect_refused(both, two_one, 2, "rank 0 has rank 1, which gave another");
    expect_refused(both, two_none, 2, "rank 0 has rank 1, which gave another");
    expect_refused(other, one_none, 2, "rank 0 is not in the communicator");
    expect_refused(same_size, two, 3, "rank 0 has rank 1, which gave another");
}

static void test_nobody_is_in_a_set(void **state)
{
    (void)state;
    const int64_t counts[] = {0, 0};
    const struct given_sets given = {NULL, counts, 2};
    struct error err = ERROR_INIT;
    assert_int_equal(given_sets_check(&given, &err), 0);
    assert_null(given_sets_first(&given, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_set_is_found_once),
        cmocka_unit_test(test_sets_that_differ),
        cmocka_unit_test(test_nobody_is_in_a_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
