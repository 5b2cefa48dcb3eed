/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/reduce.h"

#include <stdint.h>

#include "engine/half.h"
#include "engine/loops.h"
#include "engine/reduce_test.h"

/* ---- The 16-bit types ------------------------------------------------------------------------ */

INLINE float combine(enum hvd_op op, float x, float y)
{
    switch (op) {
    case HVD_SUM: return x + y;
    case HVD_MIN: return x < y ? x : y;
    case HVD_MAX: return x > y ? x : y;
    default: return x * y;
    }
}

INLINE void fp16_loop(enum hvd_op op, uint16_t *out, const uint16_t *a, const uint16_t *b,
                      size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = fp16_of_float(combine(op, float_of_fp16(a[i]), float_of_fp16(b[i])));
}

INLINE void bf16_loop(enum hvd_op op, uint16_t *out, const uint16_t *a, const uint16_t *b,
                      size_t count)
{
    INDEPENDENT for (size_t i = 0; i < count; i++) out[i] =
        bf16_of_float(combine(op, float_of_bf16(a[i]), float_of_bf16(b[i])));
}

/* NAME_sum, NAME_min, NAME_max, NAME_product, and find_NAME. */
#define FUNCTION(name, attributes, loop, op)                                           \
    attributes static void name(void *out, const void *a, const void *b, size_t count) \
    {                                                                                  \
        loop(op, out, a, b, count);                                                    \
    }
#define FUNCTIONS(name, attributes, loop)                   \
    FUNCTION(name##_sum, attributes, loop, HVD_SUM)         \
    FUNCTION(name##_min, attributes, loop, HVD_MIN)         \
    FUNCTION(name##_max, attributes, loop, HVD_MAX)         \
    FUNCTION(name##_product, attributes, loop, HVD_PRODUCT) \
    static reduce_function *find_##name(enum hvd_op op)     \
    {                                                       \
        switch (op) {                                       \
        case HVD_SUM: return name##_sum;                    \
        case HVD_MIN: return name##_min;                    \
        case HVD_MAX: return name##_max;                    \
        case HVD_PRODUCT: return name##_product;            \
        default: return NULL;                               \
        }                                                   \
    }

FUNCTIONS(fp16, , fp16_loop)
FUNCTIONS(bf16, , bf16_loop)

#if HAVE_AVX2
AVX2 INLINE __m256 combine_8(enum hvd_op op, __m256 x, __m256 y)
{
    switch (op) {
    case HVD_SUM: return _mm256_add_ps(x, y);
    case HVD_MIN: return _mm256_min_ps(x, y);
    case HVD_MAX: return _mm256_max_ps(x, y);
    default: return _mm256_mul_ps(x, y);
    }
}

AVX2 INLINE void fp16_loop_avx2(enum hvd_op op, uint16_t *out, const uint16_t *a, const uint16_t *b,
                                size_t count)
{
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        __m256 result = combine_8(op, avx2_load_fp16(a + i), avx2_load_fp16(b + i));
        avx2_store_fp16(out + i, result);
    }
    fp16_loop(op, out + i, a + i, b + i, count - i);
}

FUNCTIONS(fp16_avx2, AVX2, fp16_loop_avx2)
FUNCTIONS(bf16_avx2, AVX2, bf16_loop)
#endif

reduce_function *reduce_find_fp16(enum hvd_op op)
{
#if HAVE_AVX2
    if (avx2_is_here())
        return find_fp16_avx2(op);
#endif
    return find_fp16(op);
}

reduce_function *reduce_find_bf16(enum hvd_op op)
{
#if HAVE_AVX2
    if (avx2_is_here())
        return find_bf16_avx2(op);
#endif
    return find_bf16(op);
}

reduce_function *reduce_find_fp16_portable(enum hvd_op op)
{
    return find_fp16(op);
}

reduce_function *reduce_find_bf16_portable(enum hvd_op op)
{
    return find_bf16(op);
}

/* ---- All types ------------------------------------------------------------------------------- */

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
