/* SPDX-License-Identifier: Apache-2.0 */
#include "values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "engine/elements.h"
#include "engine/half.h"
#include "worker.h"

static uint64_t mix(uint64_t x)
{
    x ^= x >> 31;
    x *= 0x7fb5d329728ea185u;
    x ^= x >> 27;
    x *= 0x81dadef4bc2dd44du;
    return x ^ x >> 33;
}

uint64_t values_seed(int rank, size_t i)
{
    return mix(mix((uint64_t)rank + 1) + i);
}

/* Magnitudes of 0.5 to 2, so that neither sums nor products of a few ranks overflow in fp16. */
static double real_value(int rank, size_t i)
{
    uint64_t bits = values_seed(rank, i);
    double size = 0.5 + (double)(bits >> 12) * 0x1.8p-52;
    return bits & 1 ? -size : size;
}

static bool is_real(enum hvd_type type)
{
    return type == HVD_FLOAT16 || type == HVD_BFLOAT16 || type == HVD_FLOAT32 ||
           type == HVD_FLOAT64;
}

void values_write(enum hvd_type type, int rank, size_t first, size_t count, void *to)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = values_seed(rank, first + i);
        double value = real_value(rank, first + i);
        switch (type) {
        case HVD_UINT8:
        case HVD_INT8: ((uint8_t *)to)[i] = (uint8_t)bits; break;
        case HVD_UINT16:
        case HVD_INT16: ((uint16_t *)to)[i] = (uint16_t)bits; break;
        case HVD_UINT32:
        case HVD_INT32: ((uint32_t *)to)[i] = (uint32_t)bits; break;
        case HVD_UINT64:
        case HVD_INT64: ((uint64_t *)to)[i] = bits; break;
        case HVD_BOOL: ((uint8_t *)to)[i] = bits % 3 == 0; break;
        case HVD_FLOAT16: ((uint16_t *)to)[i] = fp16_of_float((float)value); break;
        case HVD_BFLOAT16: ((uint16_t *)to)[i] = bf16_of_float((float)value); break;
        case HVD_FLOAT32: ((float *)to)[i] = (float)value; break;
        case HVD_FLOAT64: ((double *)to)[i] = value; break;
        }
    }
}

/* Only for floating-point types. */
static long double element(enum hvd_type type, const void *data, size_t i)
{
    switch (type) {
    case HVD_FLOAT16: return float_of_fp16(((const uint16_t *)data)[i]);
    case HVD_BFLOAT16: return float_of_bf16(((const uint16_t *)data)[i]);
    case HVD_FLOAT32: return ((const float *)data)[i];
    default: return ((const double *)data)[i];
    }
}

static int64_t integer(enum hvd_type type, const void *data, size_t i)
{
    switch (type) {
    case HVD_UINT8:
    case HVD_BOOL: return ((const uint8_t *)data)[i];
    case HVD_INT8: return ((const int8_t *)data)[i];
    case HVD_UINT16: return ((const uint16_t *)data)[i];
    case HVD_INT16: return ((const int16_t *)data)[i];
    case HVD_UINT32: return ((const uint32_t *)data)[i];
    case HVD_INT32: return ((const int32_t *)data)[i];
    default: return ((const int64_t *)data)[i];
    }
}

static bool less(enum hvd_type type, int64_t x, int64_t y)
{
    return type == HVD_UINT64 ? (uint64_t)x < (uint64_t)y : x < y;
}

static int64_t combine_integers(enum hvd_type type, enum hvd_op op, int64_t x, int64_t y)
{
    if (type == HVD_BOOL)
        return op == HVD_SUM || op == HVD_MAX ? x | y : x & y;
    switch (op) {
    case HVD_SUM: return (int64_t)((uint64_t)x + (uint64_t)y);
    case HVD_MIN: return less(type, x, y) ? x : y;
    case HVD_MAX: return less(type, x, y) ? y : x;
    default: return (int64_t)((uint64_t)x * (uint64_t)y);
    }
}

static long double combine_reals(enum hvd_op op, long double x, long double y)
{
    switch (op) {
    case HVD_SUM: return x + y;
    case HVD_MIN: return fminl(x, y);
    case HVD_MAX: return fmaxl(x, y);
    default: return x * y;
    }
}

/* Half of the last bit of a number from 1 to 2. */
static long double rounding(enum hvd_type type)
{
    switch (type) {
    case HVD_FLOAT16: return 0x1p-11L;
    case HVD_BFLOAT16: return 0x1p-8L;
    case HVD_FLOAT32: return 0x1p-24L;
    default: return 0x1p-53L;
    }
}

/* What one rank gives, after its scale. */
static void write_scaled(enum hvd_type type, int rank, size_t first, size_t count, double prescale,
                         void *to)
{
    values_write(type, rank, first, count, to);
    if (prescale != 1)
        scale_copy(type, to, to, count, prescale);
}

static long double roundings(int size, double prescale, double postscale)
{
    return size + 1 + (prescale != 1) + (postscale != 1);
}

void values_check(const char *what, const struct reduction *reduction, size_t first, size_t count,
                  const void *result)
{
    const enum hvd_type type = reduction->type;
    const enum hvd_op op = reduction->op;
    const int size = reduction->size;
    size_t bytes = hvd_type_bytes((int)type);
    char *inputs AUTO_FREE = mem_array((size_t)size, count * bytes);
    for (int rank = 0; rank < size; rank++)
        write_scaled(type, reduction->ranks == NULL ? rank : reduction->ranks[rank], first, count,
                     reduction->prescale, inputs + (size_t)rank * count * bytes);
    for (size_t i = 0; i < count; i++) {
        long double real = 0, scale = 0;
        int64_t whole = 0;
        for (int rank = 0; rank < size; rank++) {
            const void *input = inputs + (size_t)rank * count * bytes;
            long double value = is_real(type) ? element(type, input, i) : 0;
            real = rank == 0 ? value : combine_reals(op, real, value);
            scale = op == HVD_SUM ? scale + fabsl(value) : fabsl(real);
            int64_t number = is_real(type) ? 0 : integer(type, input, i);
            whole = rank == 0 ? number : combine_integers(type, op, whole, number);
        }
        int64_t wrapped = 0;
        memcpy(&wrapped, &whole, bytes); /* little-endian, as all systems that this runs on */
        if (reduction->postscale != 1)
            scale_copy(type, &wrapped, &wrapped, 1, is_real(type) ? 1 : reduction->postscale);
        long double by = (long double)reduction->postscale;
        bool exact = (op == HVD_MIN || op == HVD_MAX) && by == 1;
        long double tolerance = scale * fabsl(by) * rounding(type) *
                                roundings(size, reduction->prescale, reduction->postscale);
        bool right = is_real(type)
                         ? fabsl(element(type, result, i) - real * by) <= (exact ? 0 : tolerance)
                         : integer(type, result, i) == integer(type, &wrapped, 0);
        if (!right)
            worker_fail("%s: type %d, op %d, element %zu of %zu is wrong", what, type, op, i,
                        count);
    }
}
