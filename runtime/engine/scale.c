/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/scale.h"

#include <stdint.h>
#include <string.h>

#include "engine/half.h"
#include "engine/loops.h"
#include "engine/scale_test.h"

/* ---- The 16-bit types ------------------------------------------------------------------------ */

INLINE void fp16_loop(uint16_t *to, const uint16_t *from, size_t count, float by)
{
    for (size_t i = 0; i < count; i++)
        to[i] = fp16_of_float(float_of_fp16(from[i]) * by);
}

INLINE void bf16_loop(uint16_t *to, const uint16_t *from, size_t count, float by)
{
    INDEPENDENT for (size_t i = 0; i < count; i++) to[i] =
        bf16_of_float(float_of_bf16(from[i]) * by);
}

#define FUNCTION(name, attributes, loop)                                                \
    attributes static void name(void *out, const void *in, size_t count, double factor) \
    {                                                                                   \
        loop(out, in, count, (float)factor);                                            \
    }

FUNCTION(fp16, , fp16_loop)
FUNCTION(bf16, , bf16_loop)

#if HAVE_AVX2
AVX2 INLINE void fp16_loop_avx2(uint16_t *to, const uint16_t *from, size_t count, float by)
{
    const __m256 factors = _mm256_set1_ps(by);
    size_t i = 0;
    for (; i + 8 <= count; i += 8)
        avx2_store_fp16(to + i, _mm256_mul_ps(avx2_load_fp16(from + i), factors));
    fp16_loop(to + i, from + i, count - i, by);
}

FUNCTION(fp16_avx2, AVX2, fp16_loop_avx2)
FUNCTION(bf16_avx2, AVX2, bf16_loop)
#endif

scale_function *scale_find_fp16(void)
{
#if HAVE_AVX2
    if (avx2_is_here())
        return fp16_avx2;
#endif
    return fp16;
}

scale_function *scale_find_bf16(void)
{
#if HAVE_AVX2
    if (avx2_is_here())
        return bf16_avx2;
#endif
    return bf16;
}

scale_function *scale_find_fp16_portable(void)
{
    return fp16;
}

scale_function *scale_find_bf16_portable(void)
{
    return bf16;
}

/* ---- All types ------------------------------------------------------------------------------- */

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
    const double one = 1;
    if (count == 0)
        return;
    if (memcmp(&factor, &one, sizeof one) == 0 || type == HVD_BOOL) {
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
    case HVD_FLOAT16: scale_find_fp16()(out, in, count, factor); break;
    case HVD_FLOAT32: scale_float32(out, in, count, factor); break;
    case HVD_FLOAT64: scale_float64(out, in, count, factor); break;
    case HVD_BFLOAT16: scale_find_bf16()(out, in, count, factor); break;
    case HVD_BOOL: break;
    }
}
