/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "include/hvd.h"

static void test_types(void **state)
{
    (void)state;
    assert_int_equal(hvd_type_bytes(HVD_BOOL), 1);
    assert_int_equal(hvd_type_bytes(HVD_BFLOAT16), 2);
    assert_int_equal(hvd_type_bytes(HVD_FLOAT64), 8);
    assert_string_equal(hvd_type_name(HVD_BFLOAT16), "bfloat16");
}

static void test_statuses(void **state)
{
    (void)state;
    assert_string_not_equal(hvd_status_text(HVD_OK), hvd_status_text(HVD_ERR_MISMATCH));
}

static void test_what_does_not_exist(void **state)
{
    (void)state;
    int wrong[] = {-1, 99, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(hvd_type_bytes(wrong[i]), 0);
        assert_null(hvd_type_name(wrong[i]));
    }
    assert_string_equal(hvd_status_text(99), "not a status of libhvd");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_types),
                                       cmocka_unit_test(test_statuses),
                                       cmocka_unit_test(test_what_does_not_exist)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
