/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/elements.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

#include "core/request.h"
#include "engine/elements_test.h"
#include "engine/half.h"

/*
 * Some loops exist twice on x86-64: with the instructions of every processor, and with AVX2 and
 * F16C, which converts eight fp16 at once. The processor at hand decides, at each search. Both give
 * the same bits, except that a NaN may be another one.
 */
#define INLINE static inline __attribute__((always_inline))

#ifdef __x86_64__
#define HAVE_AVX2 1
#define AVX2 __attribute__((target("avx2,f16c")))

/* Whether this processor has both. */
static inline bool avx2_is_here(void)
{
    unsigned a, b, c = 0, d; /* not every compiler's cpu_supports knows f16c */
    return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) != 0;
}

AVX2 INLINE __m256 avx2_load_fp16(const uint16_t *from)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)from));
}

/* Rounds to the nearest. */
AVX2 INLINE void avx2_store_fp16(uint16_t *to, __m256 values)
{
    _mm_storeu_si128((__m128i *)(void *)to, _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT));
}
#else
#define HAVE_AVX2 0
#endif

/* ---- Reductions of the 16-bit types ---------------------------------------------------------- */

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

/* NAME_sum, NAME_min, NAME_max and NAME_product. */
#define COMBINATION(name, attributes, loop, op)                                        \
    attributes static void name(void *out, const void *a, const void *b, size_t count) \
    {                                                                                  \
        loop(op, out, a, b, count);                                                    \
    }
#define COMBINATIONS(name, attributes, loop)           \
    COMBINATION(name##_sum, attributes, loop, HVD_SUM) \
    COMBINATION(name##_min, attributes, loop, HVD_MIN) \
    COMBINATION(name##_max, attributes, loop, HVD_MAX) \
    COMBINATION(name##_product, attributes, loop, HVD_PRODUCT)

COMBINATIONS(fp16, , fp16_loop)
COMBINATIONS(bf16, , bf16_loop)

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

COMBINATIONS(fp16_avx2, AVX2, fp16_loop_avx2)
COMBINATIONS(bf16_avx2, AVX2, bf16_loop)
#endif

/* ---- Reductions of all types ----------------------------------------------------------------- */

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

#define PICK(name) pick(op, name##_sum, name##_min, name##_max, name##_product)

reduce_function *reduce_find_portable(enum hvd_type type, enum hvd_op op)
{
    return type == HVD_FLOAT16 ? PICK(fp16) : PICK(bf16);
}

static reduce_function *find_half(enum hvd_type type, enum hvd_op op)
{
#if HAVE_AVX2
    if (avx2_is_here())
        return type == HVD_FLOAT16 ? PICK(fp16_avx2) : PICK(bf16_avx2);
#endif
    return reduce_find_portable(type, op);
}

reduce_function *reduce_find(enum hvd_type type, enum hvd_op op)
{
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
    case HVD_FLOAT16:
    case HVD_BFLOAT16: return find_half(type, op);
    }
    return NULL;
}

/* ---- Products with a factor ------------------------------------------------------------------ */

INLINE void fp16_scale_loop(uint16_t *to, const uint16_t *from, size_t count, float by)
{
    for (size_t i = 0; i < count; i++)
        to[i] = fp16_of_float(float_of_fp16(from[i]) * by);
}

INLINE void bf16_scale_loop(uint16_t *to, const uint16_t *from, size_t count, float by)
{
    INDEPENDENT for (size_t i = 0; i < count; i++) to[i] =
        bf16_of_float(float_of_bf16(from[i]) * by);
}

#define SCALE(name, attributes, loop)                                                   \
    attributes static void name(void *out, const void *in, size_t count, double factor) \
    {                                                                                   \
        loop(out, in, count, (float)factor);                                            \
    }

SCALE(scale_fp16, , fp16_scale_loop)
SCALE(scale_bf16, , bf16_scale_loop)

#if HAVE_AVX2
AVX2 INLINE void fp16_scale_loop_avx2(uint16_t *to, const uint16_t *from, size_t count, float by)
{
    const __m256 factors = _mm256_set1_ps(by);
    size_t i = 0;
    for (; i + 8 <= count; i += 8)
        avx2_store_fp16(to + i, _mm256_mul_ps(avx2_load_fp16(from + i), factors));
    fp16_scale_loop(to + i, from + i, count - i, by);
}

SCALE(scale_fp16_avx2, AVX2, fp16_scale_loop_avx2)
SCALE(scale_bf16_avx2, AVX2, bf16_scale_loop)
#endif

scale_function *scale_find_portable(enum hvd_type type)
{
    return type == HVD_FLOAT16 ? scale_fp16 : scale_bf16;
}

static scale_function *scale_find_half(enum hvd_type type)
{
#if HAVE_AVX2
    if (avx2_is_here())
        return type == HVD_FLOAT16 ? scale_fp16_avx2 : scale_bf16_avx2;
#endif
    return scale_find_portable(type);
}

#define REALS(name, type, factor_type)                                               \
    static void name(void *out, const void *in, size_t count, double factor)         \
    {                                                                                \
        const factor_type by = (factor_type)factor;                                  \
        const type *from = in;                                                       \
        type *to = out;                                                              \
        INDEPENDENT for (size_t i = 0; i < count; i++) to[i] = (type)(from[i] * by); \
    }
REALS(scale_float32, float, float)
REALS(scale_float64, double, double)

/* `low` and `end` are powers of two, so a double has them exactly. `end` is the first value that is
 * too large. */
#define INTEGERS(name, type, least, most, low, end)                          \
    static void name(void *out, const void *in, size_t count, double factor) \
    {                                                                        \
        const type *from = in;                                               \
        type *to = out;                                                      \
        INDEPENDENT for (size_t i = 0; i < count; i++)                       \
        {                                                                    \
            double value = (double)from[i] * factor;                         \
            to[i] = value >= (end)   ? (most)                                \
                    : value <= (low) ? (least)                               \
                    : value == value ? (type)value                           \
                                     : (type)0;                              \
        }                                                                    \
    }
INTEGERS(scale_int8, int8_t, INT8_MIN, INT8_MAX, -0x1p7, 0x1p7)
INTEGERS(scale_int16, int16_t, INT16_MIN, INT16_MAX, -0x1p15, 0x1p15)
INTEGERS(scale_int32, int32_t, INT32_MIN, INT32_MAX, -0x1p31, 0x1p31)
INTEGERS(scale_int64, int64_t, INT64_MIN, INT64_MAX, -0x1p63, 0x1p63)
INTEGERS(scale_uint8, uint8_t, 0, UINT8_MAX, 0.0, 0x1p8)
INTEGERS(scale_uint16, uint16_t, 0, UINT16_MAX, 0.0, 0x1p16)
INTEGERS(scale_uint32, uint32_t, 0, UINT32_MAX, 0.0, 0x1p32)
INTEGERS(scale_uint64, uint64_t, 0, UINT64_MAX, 0.0, 0x1p64)

void scale_copy(enum hvd_type type, void *out, const void *in, size_t count, double factor)
{
    if (count == 0)
        return;
    if (factor_is_one(factor) || type == HVD_BOOL) {
        if (out != in)
            memcpy(out, in, count * hvd_type_bytes((int)type));
        return;
    }
    switch (type) {
    case HVD_UINT8: scale_uint8(out, in, count, factor); break;
    case HVD_INT8: scale_int8(out, in, count, factor); break;
    case HVD_UINT16: scale_uint16(out, in, count, factor); break;
    case HVD_INT16: scale_int16(out, in, count, factor); break;
    case HVD_UINT32: scale_uint32(out, in, count, factor); break;
    case HVD_INT32: scale_int32(out, in, count, factor); break;
    case HVD_UINT64: scale_uint64(out, in, count, factor); break;
    case HVD_INT64: scale_int64(out, in, count, factor); break;
    case HVD_FLOAT16:
    case HVD_BFLOAT16: scale_find_half(type)(out, in, count, factor); break;
    case HVD_FLOAT32: scale_float32(out, in, count, factor); break;
    case HVD_FLOAT64: scale_float64(out, in, count, factor); break;
    case HVD_BOOL: break;
    }
}
