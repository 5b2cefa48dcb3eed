/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/bits.h"

static void test_numbers_come_and_go(void **state)
{
    (void)state;
    AUTO_BITS struct bits bits = {0};
    assert_false(bits_any(&bits));
    for (size_t number = 0; number < 300; number += 7)
        bits_set(&bits, number);
    assert_int_equal(bits_size(&bits), 43);
    size_t expected = 0;
    for (size_t number = bits_next(&bits, 0); number != SIZE_MAX;
         number = bits_next(&bits, number + 1), expected += 7)
        assert_int_equal(number, expected);
    assert_int_equal(expected, 301);
    bits_unset(&bits, 294);
    bits_unset(&bits, 100000);
    assert_false(bits_test(&bits, 294));
    assert_true(bits_test(&bits, 287));
    assert_int_equal(bits_next(&bits, 288), SIZE_MAX);
    bits_clear(&bits);
    assert_false(bits_any(&bits));
}

static void test_sets_of_different_length(void **state)
{
    (void)state;
    AUTO_BITS struct bits small = {0}, large = {0}, copy = {0};
    bits_set(&small, 3);
    bits_set(&large, 3);
    assert_true(bits_equal(&small, &large));
    bits_set(&large, 500);
    assert_false(bits_equal(&small, &large));
    assert_true(bits_contain(&large, &small));
    assert_false(bits_contain(&small, &large));
    assert_true(bits_meet(&small, &large));
    bits_copy(&copy, &large);
    bits_remove(&copy, &small);
    assert_false(bits_meet(&copy, &small));
    bits_add(&small, &copy);
    assert_true(bits_equal(&small, &large));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_come_and_go),
        cmocka_unit_test(test_sets_of_different_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
