/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/adasum_pair.h"

#include "engine/reduce_loop.h"

/* Sums in lanes are vector code, and more exact than one long sum. */
enum { LANES = 8 };

/* The square root of the smallest normal double: Horovod's limit for the square of a norm. */
#define NORM_MIN 0x1p-511

static double factor_of(double ab, double own)
{
    return own < NORM_MIN ? 1 : 1 - ab / own / 2;
}

#define FUNCTIONS(name, type)                                                                    \
    static void name##_multiply(const void *first, const void *second, size_t count,             \
                                struct adasum_dots *dots)                                        \
    {                                                                                            \
        const type *a = first, *b = second;                                                      \
        double aa[LANES] = {0}, bb[LANES] = {0}, ab[LANES] = {0};                                \
        size_t i = 0;                                                                            \
        for (; i + LANES <= count; i += LANES)                                                   \
            for (size_t k = 0; k < LANES; k++) {                                                 \
                double x = (double)a[i + k], y = (double)b[i + k];                               \
                aa[k] += x * x, bb[k] += y * y, ab[k] += x * y;                                  \
            }                                                                                    \
        for (; i < count; i++) {                                                                 \
            double x = (double)a[i], y = (double)b[i];                                           \
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
            (type)(by_a * (double)a[i] + by_b * (double)b[i]);                                   \
    }                                                                                            \
    static const struct adasum_pair name = {name##_multiply, name##_combine};

FUNCTIONS(float32, float)
FUNCTIONS(float64, double)

const struct adasum_pair *adasum_pair_find(enum hvd_type type)
{
    switch (type) {
    case HVD_FLOAT32: return &float32;
    case HVD_FLOAT64: return &float64;
    default: return NULL;
    }
}
