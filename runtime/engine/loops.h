/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What loops over elements need.
 *
 * Some exist twice on x86-64: with the instructions of every processor, and with AVX2 and
 * F16C, which converts eight fp16 at once. The processor at hand decides, at each search. Both give
 * the same bits, except that a NaN may be another one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* INDEPENDENT before a loop says that no turn reads what another turn writes. The compiler cannot
 * see that when the output may be an input, at the same place, and would not vectorize the loop. */
#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

#define INLINE static inline __attribute__((always_inline))

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>

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
