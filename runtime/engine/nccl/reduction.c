/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/nccl/reduction.h"

#include <math.h>
#include <string.h>

#include "engine/half.h"
#include "engine/nccl/library.h"

static bool is_one(double value)
{
    const double one = 1;
    return memcmp(&value, &one, sizeof one) == 0;
}

/* A product with it only changes the exponent. */
static bool is_power_of_two(double value)
{
    int exponent;
    return value > 0 && fpclassify(frexp(value, &exponent) - 0.5) == FP_ZERO;
}

/* -1: NCCL does not have it. */
static int type_of(enum hvd_type type)
{
    switch (type) {
    case HVD_UINT8:
    case HVD_BOOL: return NCCL_UINT8;
    case HVD_INT8: return NCCL_INT8;
    case HVD_INT32: return NCCL_INT32;
    case HVD_UINT32: return NCCL_UINT32;
    case HVD_INT64: return NCCL_INT64;
    case HVD_UINT64: return NCCL_UINT64;
    case HVD_FLOAT16: return NCCL_FLOAT16;
    case HVD_FLOAT32: return NCCL_FLOAT32;
    case HVD_FLOAT64: return NCCL_FLOAT64;
    case HVD_BFLOAT16: return NCCL_BFLOAT16;
    case HVD_INT16:
    case HVD_UINT16: break;
    }
    return -1;
}

/* -1: NCCL does not have it. */
static int op_of(enum hvd_type type, enum hvd_op op)
{
    bool is_bool = type == HVD_BOOL;
    switch (op) {
    case HVD_MIN: return NCCL_MIN;
    case HVD_MAX: return NCCL_MAX;
    case HVD_PRODUCT: return is_bool ? NCCL_MIN : NCCL_PRODUCT;
    case HVD_SUM:
    case HVD_AVERAGE: return is_bool ? NCCL_MAX : NCCL_SUM;
    default: return -1;
    }
}

/* Sums and averages of floating-point numbers. */
static void plan_sum(bool average, bool narrow, double prescale, double postscale, int size,
                     struct nccl_reduction *out)
{
    double after = average ? postscale / size : postscale;
    if (size == 1) { /* NCCL would multiply in the communicator of one rank */
        out->before = prescale;
        out->after = after;
    } else if (!is_one(prescale)) {
        out->factor = prescale;
        out->after = after;
    } else if (average && is_one(postscale)) {
        out->op = NCCL_AVERAGE;
    } else if (is_power_of_two(after) && !narrow) {
        out->factor = after; /* a sum of such products is the product of the sum */
    } else {
        out->after = after;
    }
}

enum hvd_status nccl_reduction_plan(enum hvd_type type, enum hvd_op op, double prescale,
                                    double postscale, int size, struct nccl_reduction *out,
                                    struct error *err)
{
    *out = (struct nccl_reduction){type_of(type), op_of(type, op), 1, 1, 1};
    if (size == 1 && op == HVD_AVERAGE)
        op = HVD_SUM;
    if (out->type < 0) {
        error_set(err, "NCCL cannot reduce %s", type == HVD_INT16 ? "int16" : "uint16");
        return HVD_ERR_UNSUPPORTED;
    }
    if (out->op < 0) {
        error_set(err, "NCCL does not have the operation %d", op);
        return HVD_ERR_UNSUPPORTED;
    }
    if (out->type < NCCL_FLOAT16) {
        if (op == HVD_AVERAGE)
            out->op = NCCL_AVERAGE;
        if (is_one(prescale) && is_one(postscale))
            return HVD_OK;
        error_set(err, "NCCL cannot scale integers");
        return HVD_ERR_UNSUPPORTED;
    }
    if (op == HVD_SUM || op == HVD_AVERAGE) {
        plan_sum(op == HVD_AVERAGE, type == HVD_FLOAT16, prescale, postscale, size, out);
    } else {
        out->before = prescale;
        out->after = postscale;
    }
    return HVD_OK;
}

size_t nccl_scalar(int type, double factor, void *out)
{
    const float single = (float)factor;
    const uint16_t half = type == NCCL_FLOAT16 ? fp16_of_float(single) : bf16_of_float(single);
    if (type == NCCL_FLOAT64)
        return memcpy(out, &factor, sizeof factor), sizeof factor;
    if (type == NCCL_FLOAT32)
        return memcpy(out, &single, sizeof single), sizeof single;
    return memcpy(out, &half, sizeof half), sizeof half;
}
