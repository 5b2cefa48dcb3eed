/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "engine/elements.h"
#include "engine/elements_test.h"
#include "engine/half.h"

static void test_real_numbers(void **state)
{
    (void)state;
    float floats[3] = {1, -2, 0.5f}, out[3];
    double doubles[2] = {1, 3};
    scale_copy(HVD_FLOAT32, out, floats, 3, 0.1);
    for (int i = 0; i < 3; i++)
        assert_true(out[i] == floats[i] * 0.1f);
    scale_copy(HVD_FLOAT64, doubles, doubles, 2, 1.0 / 3);
    assert_true(doubles[1] == 3 * (1.0 / 3));
}

static void test_halves_are_rounded_once(void **state)
{
    (void)state;
    uint16_t fp16[2] = {fp16_of_float(1), fp16_of_float(-3)}, bf16 = bf16_of_float(5);
    scale_copy(HVD_FLOAT16, fp16, fp16, 2, 1.0 / 3);
    assert_int_equal(fp16[0], fp16_of_float(1.0f / 3));
    assert_int_equal(fp16[1], fp16_of_float(-3 * (1.0f / 3)));
    scale_copy(HVD_BFLOAT16, &bf16, &bf16, 1, 0.25);
    assert_int_equal(bf16, bf16_of_float(1.25f));
}

static bool is_nan(uint16_t bits, uint16_t infinity)
{
    return (bits & 0x7fff) > infinity;
}

/* Each 16-bit value with factors that overflow, underflow and round: both loops give the same bits.
 * Of a NaN, the bits may differ. */
static void check_half(enum hvd_type type, uint16_t infinity)
{
    enum { VALUES = 65536 };
    const double factors[] = {0.5, 3, 1.0 / 3, -1e-3, 1e30, 1e-30, 0, -0.0, 1e300, INFINITY};
    uint16_t *in = malloc(2 * VALUES), *first = malloc(2 * VALUES), *second = malloc(2 * VALUES);
    for (size_t i = 0; i < VALUES; i++)
        in[i] = (uint16_t)i;
    for (size_t k = 0; k < sizeof factors / sizeof factors[0]; k++) {
        scale_copy(type, first, in, VALUES, factors[k]);
        scale_find_portable(type)(second, in, VALUES, factors[k]);
        for (size_t i = 0; i < VALUES; i++)
            assert_true(first[i] == second[i] ||
                        (is_nan(first[i], infinity) && is_nan(second[i], infinity)));
    }
    free(in);
    free(first);
    free(second);
}

static void test_halves_are_the_same_on_each_processor(void **state)
{
    (void)state;
    check_half(HVD_FLOAT16, 0x7c00);
    check_half(HVD_BFLOAT16, 0x7f80);
}

/* In place, from any element on, of any length: nothing beside the range changes. */
static void test_ranges_of_halves(void **state)
{
    (void)state;
    for (size_t start = 0; start < 4; start++)
        for (size_t count = 0; count < 40; count++) {
            uint16_t data[48];
            for (size_t i = 0; i < 48; i++)
                data[i] = fp16_of_float((float)i);
            scale_copy(HVD_FLOAT16, data + start, data + start, count, 3);
            for (size_t i = 0; i < 48; i++) {
                bool inside = i >= start && i < start + count;
                assert_int_equal(data[i], fp16_of_float((float)i * (inside ? 3.0f : 1.0f)));
            }
        }
}

static void test_integers_are_truncated_and_limited(void **state)
{
    (void)state;
    int32_t ints[4] = {7, -7, INT32_MAX, INT32_MIN};
    uint8_t bytes[2] = {200, 3};
    int64_t longs[2] = {INT64_MAX, -3};
    scale_copy(HVD_INT32, ints, ints, 2, 0.5);
    assert_int_equal(ints[0], 3);
    assert_int_equal(ints[1], -3);
    scale_copy(HVD_INT32, ints + 2, ints + 2, 2, 2);
    assert_int_equal(ints[2], INT32_MAX);
    assert_int_equal(ints[3], INT32_MIN);
    scale_copy(HVD_UINT8, bytes, bytes, 2, -1);
    assert_int_equal(bytes[0], 0);
    scale_copy(HVD_INT64, longs, longs, 1, 1.5);
    assert_true(longs[0] == INT64_MAX);
    scale_copy(HVD_INT64, longs, longs, 2, NAN);
    assert_true(longs[0] == 0 && longs[1] == 0);
}

static void test_factor_one_is_a_copy(void **state)
{
    (void)state;
    const uint64_t in[2] = {UINT64_MAX, 1};
    uint64_t out[2] = {0};
    const bool truth[2] = {true, false};
    bool said[2] = {false, true};
    scale_copy(HVD_UINT64, out, in, 2, 1);
    assert_memory_equal(in, out, sizeof in);
    scale_copy(HVD_BOOL, said, truth, 2, 0.5);
    assert_memory_equal(truth, said, sizeof truth);
    scale_copy(HVD_UINT64, NULL, NULL, 0, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_real_numbers),
        cmocka_unit_test(test_halves_are_rounded_once),
        cmocka_unit_test(test_halves_are_the_same_on_each_processor),
        cmocka_unit_test(test_ranges_of_halves),
        cmocka_unit_test(test_integers_are_truncated_and_limited),
        cmocka_unit_test(test_factor_one_is_a_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
