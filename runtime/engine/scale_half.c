/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/scale_half.h"

#include "engine/avx2.h"
#include "engine/half.h"
#include "engine/reduce_loop.h"

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
