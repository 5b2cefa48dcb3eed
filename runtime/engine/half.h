/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The 16-bit floating-point types: fp16 (IEEE 754 binary16) and bf16 (the upper half of a float).
 *
 * Both directions follow IEEE 754. To float is exact. From float rounds to the nearest value, and a
 * tie to the even one. Overflow gives infinity. A NaN stays a NaN and becomes quiet. The functions
 * are inline, because loops over them must become vector code.
 */
#pragma once

#include <stdint.h>
#include <string.h>

static inline uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* 2^-24 is the smallest fp16, so a subnormal one is a multiple of it. */
static inline float float_of_fp16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = half & 0x7fff;
    if (rest < 0x0400)
        return float_of_bits(sign | float_bits((float)rest * 0x1p-24f));
    if (rest < 0x7c00)
        return float_of_bits(sign | ((rest << 13) + ((uint32_t)(127 - 15) << 23)));
    uint32_t quiet = rest > 0x7c00 ? 0x00400000 : 0;
    return float_of_bits(sign | 0x7f800000 | (rest & 0x03ff) << 13 | quiet);
}

static inline uint16_t fp16_of_float(float value)
{
    uint32_t bits = float_bits(value);
    uint32_t sign = (bits >> 16) & 0x8000, rest = bits & 0x7fffffff;
    if (rest > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | ((rest >> 13) & 0x01ff));
    if (rest >= float_bits(65520.0f)) /* halfway from the largest fp16 to the next power of two */
        return (uint16_t)(sign | 0x7c00);
    /* In floats from 0.5 to 1 the last bit is 2^-24, so the addition rounds to a multiple of it. */
    if (rest < float_bits(0x1p-14f))
        return (uint16_t)(sign | (float_bits(float_of_bits(rest) + 0.5f) - float_bits(0.5f)));
    rest += 0x0fff + ((rest >> 13) & 1); /* a carry goes on into the exponent, as it should */
    return (uint16_t)(sign | ((rest - ((uint32_t)(127 - 15) << 23)) >> 13));
}

static inline float float_of_bf16(uint16_t half)
{
    return float_of_bits((uint32_t)half << 16);
}

static inline uint16_t bf16_of_float(float value)
{
    uint32_t bits = float_bits(value);
    uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    uint32_t quiet = bits >> 16 | 0x0040;
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
}

/* INDEPENDENT before a loop says that no turn reads what another turn writes. The compiler cannot
 * see that when the output may be an input, at the same place, and would not vectorize the loop. */
#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif
