/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/adasum_pair.h"

#include "engine/half.h"
#include "engine/reduce_loop.h"

/* Sums in lanes are vector code, and more exact than one long sum. */
enum { LANES = 8 };

/* The square root of the smallest normal double: Horovod's limit for the square of a norm. */
#define NORM_MIN 0x1p-511

static double factor_of(double ab, double own)
{
    return own < NORM_MIN ? 1 : 1 - ab / own / 2;
}

/* How an element is read as a double, and made of one. */
#define PLAIN(value) ((double)(value))
#define FP16(half) ((double)float_of_fp16(half))
#define BF16(half) ((double)float_of_bf16(half))
#define TO_FLOAT32(value) ((float)(value))
#define TO_FLOAT64(value) (value)
#define TO_FP16(value) fp16_of_float((float)(value))
#define TO_BF16(value) bf16_of_float((float)(value))

#define FUNCTIONS(name, type, read, write)                                                       \
    static void name##_multiply(const void *first, const void *second, size_t count,             \
                                struct adasum_dots *dots)                                        \
    {                                                                                            \
        const type *a = first, *b = second;                                                      \
        double aa[LANES] = {0}, bb[LANES] = {0}, ab[LANES] = {0};                                \
        size_t i = 0;                                                                            \
        for (; i + LANES <= count; i += LANES)                                                   \
            for (size_t k = 0; k < LANES; k++) {                                                 \
                double x = read(a[i + k]), y = read(b[i + k]);                                   \
                aa[k] += x * x, bb[k] += y * y, ab[k] += x * y;                                  \
            }                                                                                    \
        for (; i < count; i++) {                                                                 \
            double x = read(a[i]), y = read(b[i]);                                               \
            aa[0] += x * x, bb[0] += y * y, ab[0] += x * y;                                      \
        }                                                                                        \
        for (size_t k = 0; k < LANES; k++)                                                       \
            dots->aa += aa[k], dots->bb += bb[k], dots->ab += ab[k];                             \
    }                                                                                            \
    static void name##_combine(void *out, const void *first, const void *second, size_t count,   \
                               const struct adasum_dots *dots)                                   \
    {                                                                                            \
        const double by_a = factor_of(dots->ab, dots->aa), by_b = factor_of(dots->ab, dots->bb); \
        const type *a = first, *b = second;                                                      \
        type *to = out;                                                                          \
        INDEPENDENT for (size_t i = 0; i < count; i++) to[i] =                                   \
            write(by_a * read(a[i]) + by_b * read(b[i]));                                        \
    }                                                                                            \
    static const struct adasum_pair name = {name##_multiply, name##_combine};

FUNCTIONS(float32, float, PLAIN, TO_FLOAT32)
FUNCTIONS(float64, double, PLAIN, TO_FLOAT64)
FUNCTIONS(fp16, uint16_t, FP16, TO_FP16)
FUNCTIONS(bf16, uint16_t, BF16, TO_BF16)

const struct adasum_pair *adasum_pair_find(enum hvd_type type)
{
    switch (type) {
    case HVD_FLOAT32: return &float32;
    case HVD_FLOAT64: return &float64;
    case HVD_FLOAT16: return &fp16;
    case HVD_BFLOAT16: return &bf16;
    default: return NULL;
    }
}
