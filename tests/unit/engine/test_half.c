/* SPDX-License-Identifier: Apache-2.0 */
/* Every 16-bit value is compared with arithmetic in double, which is exact for all of them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/half.h"

struct format {
    int exponent_bits, fraction_bits;
    float (*to_float)(uint16_t);
    uint16_t (*from_float)(float);
};

static const struct format formats[] = {
    {5, 10, float_of_fp16, fp16_of_float},
    {8, 7, float_of_bf16, bf16_of_float},
};

static uint32_t infinity_bits(const struct format *format)
{
    return ((1u << format->exponent_bits) - 1) << format->fraction_bits;
}

/* The definition in IEEE 754. */
static double exact(const struct format *format, uint16_t bits)
{
    int exponent = (bits & 0x7fff) >> format->fraction_bits;
    int fraction = bits & ((1 << format->fraction_bits) - 1);
    int bias = (1 << (format->exponent_bits - 1)) - 1;
    if (exponent > 0)
        fraction += 1 << format->fraction_bits;
    double value = ldexp(fraction, (exponent > 0 ? exponent : 1) - bias - format->fraction_bits);
    return bits & 0x8000 ? -value : value;
}

static void check_to_float(const struct format *format)
{
    uint32_t infinity = infinity_bits(format);
    for (uint32_t bits = 0; bits < 65536; bits++) {
        float value = format->to_float((uint16_t)bits);
        if ((bits & 0x7fff) > infinity)
            assert_true(isnan(value));
        else if ((bits & 0x7fff) == infinity)
            assert_true(isinf(value));
        else
            assert_true((double)value == exact(format, (uint16_t)bits));
        assert_int_equal(signbit(value) != 0, bits >> 15);
    }
}

static void test_to_float(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++)
        check_to_float(&formats[i]);
}

static void check_there_and_back(const struct format *format)
{
    for (uint32_t bits = 0; bits < 65536; bits++) {
        uint16_t back = format->from_float(format->to_float((uint16_t)bits));
        if ((bits & 0x7fff) <= infinity_bits(format))
            assert_int_equal(back, bits);
        else /* a NaN, quiet from then on */
            assert_int_equal(back, bits | 1u << (format->fraction_bits - 1));
    }
}

static void test_there_and_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++)
        check_there_and_back(&formats[i]);
}

/* Around the middle between each value and the next: below it, on it (a tie goes to the even one),
 * and above it. The largest value and infinity count as neighbours, as in IEEE 754. */
static void check_rounding(const struct format *format)
{
    for (uint32_t bits = 0; bits < infinity_bits(format); bits++) {
        double low = exact(format, (uint16_t)bits), high = exact(format, (uint16_t)(bits + 1));
        float middle = (float)((low + high) / 2);
        assert_true((double)middle == (low + high) / 2);
        uint32_t even = bits % 2 == 0 ? bits : bits + 1;
        assert_int_equal(format->from_float(middle), even);
        assert_int_equal(format->from_float(nextafterf(middle, 0.0f)), bits);
        assert_int_equal(format->from_float(nextafterf(middle, INFINITY)), bits + 1);
        assert_int_equal(format->from_float(-middle), even | 0x8000);
    }
}

static void test_rounding(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++)
        check_rounding(&formats[i]);
}

static void test_the_ends_of_float(void **state)
{
    (void)state;
    assert_int_equal(fp16_of_float(0x1p-149f), 0);
    assert_int_equal(fp16_of_float(-0x1p-149f), 0x8000);
    assert_int_equal(fp16_of_float(0x1.fffffep127f), 0x7c00);
    assert_int_equal(bf16_of_float(0x1.fffffep127f), 0x7f80);
    assert_int_equal(bf16_of_float(-INFINITY), 0xff80);
    assert_int_equal(fp16_of_float(float_of_bits(0x7f800001)), 0x7e00);
    assert_int_equal(bf16_of_float(float_of_bits(0xff800001)), 0xffc0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_to_float),
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_the_ends_of_float),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
