/* SPDX-License-Identifier: Apache-2.0 */
/* The reductions of fp16 and bf16 with each 16-bit value, and edges of the other types. Property
 * tests of each type and operation are in tests/engine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/elements.h"
#include "engine/elements_test.h"
#include "engine/half.h"

#define VALUES 65536
static const enum hvd_op ops[] = {HVD_SUM, HVD_MIN, HVD_MAX, HVD_PRODUCT};

static float combine(enum hvd_op op, float x, float y)
{
    switch (op) {
    case HVD_SUM: return x + y;
    case HVD_MIN: return x < y ? x : y;
    case HVD_MAX: return x > y ? x : y;
    default: return x * y;
    }
}

typedef reduce_function *finder(enum hvd_type type, enum hvd_op op);

static bool is_nan(uint16_t bits, uint16_t infinity)
{
    return (bits & 0x7fff) > infinity;
}

/* All 16-bit values with a few others: each result is the rounded one, whichever loop made it. A
 * NaN stays one, in sums and products. */
static void check_half(finder *find, enum hvd_type type, float (*to)(uint16_t),
                       uint16_t (*from)(float), uint16_t infinity)
{
    uint16_t *a = malloc(2 * VALUES), *b = malloc(2 * VALUES), *out = malloc(2 * VALUES);
    const float others[] = {0.0f, 1.0f, -1.0f, 3.140625f, -0.0078125f, 1024.0f};
    for (size_t k = 0; k < sizeof others / sizeof others[0]; k++) {
        for (size_t i = 0; i < VALUES; i++) {
            a[i] = (uint16_t)i;
            b[i] = from(others[k]);
        }
        for (size_t o = 0; o < 4; o++) {
            find(type, ops[o])(out, a, b, VALUES);
            for (size_t i = 0; i < VALUES; i++) {
                bool ordered = ops[o] == HVD_MIN || ops[o] == HVD_MAX;
                if (!is_nan(a[i], infinity))
                    assert_int_equal(out[i], from(combine(ops[o], to(a[i]), to(b[i]))));
                else if (!ordered)
                    assert_true(is_nan(out[i], infinity));
            }
        }
    }
    free(a);
    free(b);
    free(out);
}

static void test_fp16(void **state)
{
    (void)state;
    check_half(reduce_find, HVD_FLOAT16, float_of_fp16, fp16_of_float, 0x7c00);
    check_half(reduce_find_portable, HVD_FLOAT16, float_of_fp16, fp16_of_float, 0x7c00);
}

static void test_bf16(void **state)
{
    (void)state;
    check_half(reduce_find, HVD_BFLOAT16, float_of_bf16, bf16_of_float, 0x7f80);
    check_half(reduce_find_portable, HVD_BFLOAT16, float_of_bf16, bf16_of_float, 0x7f80);
}

/* Pairs of values at random: both loops give the same bits, or both a NaN. Minima and maxima of a
 * NaN are not defined. */
static void check_same(enum hvd_type type, uint16_t infinity)
{
    enum { PAIRS = 1 << 20 };
    uint16_t *a = malloc(2 * PAIRS), *b = malloc(2 * PAIRS), *first = malloc(2 * PAIRS),
             *second = malloc(2 * PAIRS);
    uint32_t seed = 1;
    for (size_t i = 0; i < PAIRS; i++) {
        seed = seed * 1664525u + 1013904223u;
        a[i] = (uint16_t)(seed >> 16);
        seed = seed * 1664525u + 1013904223u;
        b[i] = (uint16_t)(seed >> 16);
    }
    for (size_t o = 0; o < 4; o++) {
        reduce_find(type, ops[o])(first, a, b, PAIRS);
        reduce_find_portable(type, ops[o])(second, a, b, PAIRS);
        for (size_t i = 0; i < PAIRS; i++) {
            bool no_number = is_nan(a[i], infinity) || is_nan(b[i], infinity);
            bool both_nan = is_nan(first[i], infinity) && is_nan(second[i], infinity);
            if (no_number && (ops[o] == HVD_MIN || ops[o] == HVD_MAX))
                continue;
            assert_true(first[i] == second[i] || both_nan);
        }
    }
    free(a);
    free(b);
    free(first);
    free(second);
}

static void test_halves_are_the_same_on_each_processor(void **state)
{
    (void)state;
    check_same(HVD_FLOAT16, 0x7c00);
    check_same(HVD_BFLOAT16, 0x7f80);
}

/* In place, from any element on, of any length: nothing beside the range changes. */
static void test_ranges(void **state)
{
    (void)state;
    for (size_t start = 0; start < 4; start++) {
        for (size_t count = 0; count < 40; count++) {
            uint16_t a[48], b[48];
            for (size_t i = 0; i < 48; i++) {
                a[i] = fp16_of_float((float)i);
                b[i] = fp16_of_float(100.0f);
            }
            reduce_find(HVD_FLOAT16, HVD_SUM)(a + start, a + start, b + start, count);
            for (size_t i = 0; i < 48; i++) {
                bool inside = i >= start && i < start + count;
                assert_int_equal(a[i], fp16_of_float((float)i + (inside ? 100.0f : 0.0f)));
            }
        }
    }
}

static void test_integers_wrap(void **state)
{
    (void)state;
    int32_t a[2] = {INT32_MAX, INT32_MIN}, b[2] = {1, -1}, out[2];
    reduce_find(HVD_INT32, HVD_SUM)(out, a, b, 2);
    assert_int_equal(out[0], INT32_MIN);
    assert_int_equal(out[1], INT32_MAX);
    uint16_t c = 65535;
    reduce_find(HVD_UINT16, HVD_PRODUCT)(&c, &c, &c, 1);
    assert_int_equal(c, 1);
    int8_t d = -128, e = 127, f;
    reduce_find(HVD_INT8, HVD_MIN)(&f, &d, &e, 1);
    assert_int_equal(f, -128);
    uint8_t g = 128, h = 127, j;
    reduce_find(HVD_UINT8, HVD_MIN)(&j, &g, &h, 1);
    assert_int_equal(j, 127);
}

static void test_bool(void **state)
{
    (void)state;
    const uint8_t a[4] = {0, 0, 1, 7}, b[4] = {0, 2, 0, 8}, or [4] = {0, 1, 1, 1};
    const uint8_t and[4] = {0, 0, 0, 1};
    uint8_t out[4];
    for (size_t o = 0; o < 4; o++) {
        reduce_find(HVD_BOOL, ops[o])(out, a, b, 4);
        assert_memory_equal(out, ops[o] == HVD_SUM || ops[o] == HVD_MAX ? or : and, 4);
    }
}

static void test_what_does_not_exist(void **state)
{
    (void)state;
    assert_null(reduce_find(HVD_FLOAT32, HVD_AVERAGE));
    assert_null(reduce_find(HVD_FLOAT16, HVD_AVERAGE));
    assert_null(reduce_find((enum hvd_type)99, HVD_SUM));
    assert_null(reduce_find(HVD_BOOL, (enum hvd_op)99));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fp16),
        cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_halves_are_the_same_on_each_processor),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_integers_wrap),
        cmocka_unit_test(test_bool),
        cmocka_unit_test(test_what_does_not_exist),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
