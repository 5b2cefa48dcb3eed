/* SPDX-License-Identifier: Apache-2.0 */
#include "values.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static uint16_t fp16_of(double value) /* from 1 to 2047, whole */
{
    int exponent;
    double fraction = frexp(value, &exponent);
    return (uint16_t)(((exponent + 14) << 10) + ((int)(fraction * 2048) - 1024));
}

static double of_fp16(uint16_t half)
{
    return ldexp(1024 + (half & 1023), ((half >> 10) & 31) - 25);
}

static void put(enum hvd_type type, void *data, size_t i, double value)
{
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    switch (type) {
    case HVD_FLOAT16: ((uint16_t *)data)[i] = fp16_of(value); break;
    case HVD_BFLOAT16: ((uint16_t *)data)[i] = (uint16_t)(bits >> 16); break;
    case HVD_FLOAT32: ((float *)data)[i] = single; break;
    case HVD_INT32: ((int32_t *)data)[i] = (int32_t)value; break;
    case HVD_INT64: ((int64_t *)data)[i] = (int64_t)value; break;
    default: ((double *)data)[i] = value; break;
    }
}

static double get(enum hvd_type type, const void *data, size_t i)
{
    uint32_t bits;
    float single;
    switch (type) {
    case HVD_FLOAT16: return of_fp16(((const uint16_t *)data)[i]);
    case HVD_BFLOAT16:
        bits = (uint32_t)((const uint16_t *)data)[i] << 16;
        memcpy(&single, &bits, sizeof single);
        return (double)single;
    case HVD_FLOAT32: return (double)((const float *)data)[i];
    case HVD_INT32: return ((const int32_t *)data)[i];
    case HVD_INT64: return (double)((const int64_t *)data)[i];
    default: return ((const double *)data)[i];
    }
}

/* 1 to 3, and 1 or 2 for a product, which only eight ranks make larger. Adasum has the same vector
 * on all ranks: then it is the result. */
static double value_of(enum hvd_op op, int rank, size_t i)
{
    if (op == HVD_ADASUM)
        return (double)(i % 3 + 1);
    if (op == HVD_PRODUCT)
        return rank < 8 ? (double)((i + (size_t)rank) % 2 + 1) : 1;
    return (double)((i + (size_t)rank) % 3 + 1);
}

static double expected(enum hvd_type type, enum hvd_op op, size_t i)
{
    double result = value_of(op, 0, i);
    for (int rank = 1; rank < hvd_size() && op != HVD_ADASUM; rank++) {
        double value = value_of(op, rank, i);
        if (op == HVD_MIN || op == HVD_MAX)
            result = (op == HVD_MIN) == (value < result) ? value : result;
        else
            result = op == HVD_PRODUCT ? result * value : result + value;
    }
    if (op == HVD_AVERAGE)
        result *= 1.0 / hvd_size();
    bool whole = type == HVD_INT32 || type == HVD_INT64;
    return whole ? trunc(result) : result;
}

/* The part of a value by which one rounding may change it. */
static double rounding(enum hvd_type type)
{
    switch (type) {
    case HVD_FLOAT16: return 0x1p-11;
    case HVD_BFLOAT16: return 0x1p-8;
    case HVD_FLOAT32: return 0x1p-24;
    case HVD_FLOAT64: return 0x1p-53;
    default: return 0;
    }
}

void values_fill(enum hvd_type type, enum hvd_op op, void *data, size_t count)
{
    for (size_t i = 0; i < count; i++)
        put(type, data, i, value_of(op, hvd_rank(), i));
}

int64_t values_count_wrong(enum hvd_type type, enum hvd_op op, const void *data, size_t count)
{
    double tolerance = 4 * hvd_size() * rounding(type);
    int64_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        double right = expected(type, op, i);
        wrong += !(fabs(get(type, data, i) - right) <= tolerance * right);
    }
    return wrong;
}
