/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/nccl/libraries.h"
#include "engine/nccl/operations.h"

/* What NCCL computes: before, sum of factor * input, after. */
static struct nccl_reduction plan(enum hvd_type type, enum hvd_op op, double prescale,
                                  double postscale, int size)
{
    struct nccl_reduction out;
    struct error err = ERROR_INIT;
    assert_int_equal(nccl_reduction_plan(type, op, prescale, postscale, size, &out, &err), HVD_OK);
    return out;
}

/* NAN is equal to itself. */
static bool same(double found, double expected)
{
    return isnan(expected) ? isnan(found) : found == expected;
}

static void expect(struct nccl_reduction found, int op, double before, double factor, double after)
{
    assert_int_equal(found.op, op);
    assert_true(same(found.before, before));
    assert_true(same(found.factor, factor));
    assert_true(same(found.after, after));
}

static void test_sums(void **state)
{
    (void)state;
    expect(plan(HVD_FLOAT32, HVD_SUM, 1, 1, 4), NCCL_SUM, 1, 1, 1);
    expect(plan(HVD_FLOAT32, HVD_SUM, 3, 1, 4), NCCL_SUM, 1, 3, 1);
    expect(plan(HVD_FLOAT32, HVD_SUM, 3, 5, 4), NCCL_SUM, 1, 3, 5);
    expect(plan(HVD_FLOAT32, HVD_SUM, 1, 0.25, 4), NCCL_SUM, 1, 0.25, 1);
    expect(plan(HVD_FLOAT32, HVD_SUM, 1, 3, 4), NCCL_SUM, 1, 1, 3);
    expect(plan(HVD_FLOAT32, HVD_SUM, 1, -2, 4), NCCL_SUM, 1, 1, -2);
    expect(plan(HVD_FLOAT32, HVD_SUM, 1, 0, 4), NCCL_SUM, 1, 1, 0);
    expect(plan(HVD_FLOAT32, HVD_SUM, NAN, 1, 4), NCCL_SUM, 1, NAN, 1);
    expect(plan(HVD_FLOAT32, HVD_SUM, 1, NAN, 4), NCCL_SUM, 1, 1, NAN);
    /* a product before the sum could be too small for float16 */
    expect(plan(HVD_FLOAT16, HVD_SUM, 1, 0.25, 4), NCCL_SUM, 1, 1, 0.25);
    expect(plan(HVD_BFLOAT16, HVD_SUM, 1, 0.25, 4), NCCL_SUM, 1, 0.25, 1);
}

static void test_averages(void **state)
{
    (void)state;
    expect(plan(HVD_FLOAT32, HVD_AVERAGE, 1, 1, 3), NCCL_AVERAGE, 1, 1, 1);
    expect(plan(HVD_FLOAT32, HVD_AVERAGE, 1, 2, 4), NCCL_SUM, 1, 0.5, 1);
    expect(plan(HVD_FLOAT32, HVD_AVERAGE, 3, 1, 4), NCCL_SUM, 1, 3, 0.25);
    expect(plan(HVD_FLOAT32, HVD_AVERAGE, 1, NAN, 4), NCCL_SUM, 1, 1, NAN);
    expect(plan(HVD_FLOAT32, HVD_AVERAGE, NAN, 1, 4), NCCL_SUM, 1, NAN, 0.25);
    expect(plan(HVD_INT64, HVD_AVERAGE, 1, 1, 3), NCCL_AVERAGE, 1, 1, 1);
}

/* A communicator of one rank forgets elements when it multiplies: see nccl_allreduce(). */
static void test_one_rank_has_passes_only(void **state)
{
    (void)state;
    expect(plan(HVD_FLOAT32, HVD_AVERAGE, 1, 1, 1), NCCL_SUM, 1, 1, 1);
    expect(plan(HVD_FLOAT32, HVD_SUM, 3, 5, 1), NCCL_SUM, 3, 1, 5);
    expect(plan(HVD_FLOAT32, HVD_SUM, NAN, NAN, 1), NCCL_SUM, NAN, 1, NAN);
    expect(plan(HVD_UINT8, HVD_AVERAGE, 1, 1, 1), NCCL_SUM, 1, 1, 1);
}

static void test_other_operations(void **state)
{
    (void)state;
    expect(plan(HVD_FLOAT64, HVD_MAX, 0.5, 3, 4), NCCL_MAX, 0.5, 1, 3);
    expect(plan(HVD_INT8, HVD_MIN, 1, 1, 4), NCCL_MIN, 1, 1, 1);
    expect(plan(HVD_UINT32, HVD_PRODUCT, 1, 1, 4), NCCL_PRODUCT, 1, 1, 1);
    expect(plan(HVD_BOOL, HVD_SUM, 1, 1, 4), NCCL_MAX, 1, 1, 1);
    expect(plan(HVD_BOOL, HVD_PRODUCT, 1, 1, 4), NCCL_MIN, 1, 1, 1);
    expect(plan(HVD_BOOL, HVD_MIN, 1, 1, 4), NCCL_MIN, 1, 1, 1);
}

static void test_what_nccl_cannot_do(void **state)
{
    (void)state;
    struct nccl_reduction out;
    struct error err = ERROR_INIT;
    assert_int_equal(nccl_reduction_plan(HVD_INT16, HVD_SUM, 1, 1, 2, &out, &err),
                     HVD_ERR_UNSUPPORTED);
    assert_string_equal(err.text, "NCCL cannot reduce int16");
    assert_int_equal(nccl_reduction_plan(HVD_UINT16, HVD_MAX, 1, 1, 2, &out, &err),
                     HVD_ERR_UNSUPPORTED);
    assert_int_equal(nccl_reduction_plan(HVD_INT32, HVD_SUM, 2, 1, 2, &out, &err),
                     HVD_ERR_UNSUPPORTED);
    assert_string_equal(err.text, "NCCL cannot scale integers");
    assert_int_equal(nccl_reduction_plan(HVD_UINT64, HVD_AVERAGE, 1, 0.5, 2, &out, &err),
                     HVD_ERR_UNSUPPORTED);
    assert_int_equal(nccl_reduction_plan(HVD_FLOAT32, (enum hvd_op)2, 1, 1, 2, &out, &err),
                     HVD_ERR_UNSUPPORTED);
    assert_string_equal(err.text, "NCCL does not have the operation 2");
}

static void test_types(void **state)
{
    (void)state;
    assert_int_equal(plan(HVD_UINT8, HVD_SUM, 1, 1, 2).type, 1);
    assert_int_equal(plan(HVD_INT8, HVD_SUM, 1, 1, 2).type, 0);
    assert_int_equal(plan(HVD_INT32, HVD_SUM, 1, 1, 2).type, 2);
    assert_int_equal(plan(HVD_UINT32, HVD_SUM, 1, 1, 2).type, 3);
    assert_int_equal(plan(HVD_INT64, HVD_SUM, 1, 1, 2).type, 4);
    assert_int_equal(plan(HVD_UINT64, HVD_SUM, 1, 1, 2).type, 5);
    assert_int_equal(plan(HVD_FLOAT16, HVD_SUM, 1, 1, 2).type, 6);
    assert_int_equal(plan(HVD_FLOAT32, HVD_SUM, 1, 1, 2).type, 7);
    assert_int_equal(plan(HVD_FLOAT64, HVD_SUM, 1, 1, 2).type, 8);
    assert_int_equal(plan(HVD_BFLOAT16, HVD_SUM, 1, 1, 2).type, 9);
    assert_int_equal(plan(HVD_BOOL, HVD_SUM, 1, 1, 2).type, 1);
}

static void test_scalars(void **state)
{
    (void)state;
    uint16_t half = 0;
    float single = 0;
    double wide = 0;
    assert_int_equal(nccl_scalar(NCCL_FLOAT16, 0.5, &half), 2);
    assert_int_equal(half, 0x3800);
    assert_int_equal(nccl_scalar(NCCL_BFLOAT16, 0.5, &half), 2);
    assert_int_equal(half, 0x3f00);
    assert_int_equal(nccl_scalar(NCCL_FLOAT32, 0.1, &single), 4);
    assert_true(single == 0.1F);
    assert_int_equal(nccl_scalar(NCCL_FLOAT64, 0.1, &wide), 8);
    assert_true(wide == 0.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_averages),
        cmocka_unit_test(test_one_rank_has_passes_only),
        cmocka_unit_test(test_other_operations),
        cmocka_unit_test(test_what_nccl_cannot_do),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_scalars),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
