/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/reduce.h"

#include <stdint.h>

#include "engine/reduce_half.h"
#include "engine/reduce_loop.h"

#define LOOP(name, type, expression)                                        \
    static void name(void *out, const void *a, const void *b, size_t count) \
    {                                                                       \
        type *to = out;                                                     \
        const type *from = a, *other = b;                                   \
        INDEPENDENT for (size_t i = 0; i < count; i++)                      \
        {                                                                   \
            type x = from[i], y = other[i];                                 \
            to[i] = (type)(expression);                                     \
        }                                                                   \
    }

/* `wide` is unsigned, or a floating-point type: signed integers must not overflow in C. */
#define ARITHMETIC(name, type, wide)          \
    LOOP(name##_sum, type, (wide)x + (wide)y) \
    LOOP(name##_min, type, x < y ? x : y)     \
    LOOP(name##_max, type, x > y ? x : y)     \
    LOOP(name##_product, type, ((wide)x) * ((wide)y))

ARITHMETIC(uint8, uint8_t, uint32_t)
ARITHMETIC(int8, int8_t, uint32_t)
ARITHMETIC(uint16, uint16_t, uint32_t)
ARITHMETIC(int16, int16_t, uint32_t)
ARITHMETIC(uint32, uint32_t, uint32_t)
ARITHMETIC(int32, int32_t, uint32_t)
ARITHMETIC(uint64, uint64_t, uint64_t)
ARITHMETIC(int64, int64_t, uint64_t)
ARITHMETIC(float32, float, float)
ARITHMETIC(float64, double, double)
LOOP(bool_or, uint8_t, (x | y) != 0)
LOOP(bool_and, uint8_t, (x != 0) & (y != 0))

static reduce_function *pick(enum hvd_op op, reduce_function *sum, reduce_function *min,
                             reduce_function *max, reduce_function *product)
{
    switch (op) {
    case HVD_SUM: return sum;
    case HVD_MIN: return min;
    case HVD_MAX: return max;
    case HVD_PRODUCT: return product;
    default: return NULL;
    }
}

reduce_function *reduce_find(enum hvd_type type, enum hvd_op op)
{
#define PICK(name) pick(op, name##_sum, name##_min, name##_max, name##_product)
    switch (type) {
    case HVD_UINT8: return PICK(uint8);
    case HVD_INT8: return PICK(int8);
    case HVD_UINT16: return PICK(uint16);
    case HVD_INT16: return PICK(int16);
    case HVD_UINT32: return PICK(uint32);
    case HVD_INT32: return PICK(int32);
    case HVD_UINT64: return PICK(uint64);
    case HVD_INT64: return PICK(int64);
    case HVD_FLOAT32: return PICK(float32);
    case HVD_FLOAT64: return PICK(float64);
    case HVD_BOOL: return pick(op, bool_or, bool_and, bool_or, bool_and);
    case HVD_FLOAT16: return reduce_find_fp16(op);
    case HVD_BFLOAT16: return reduce_find_bf16(op);
    }
#undef PICK
    return NULL;
}
