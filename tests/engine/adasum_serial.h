/* SPDX-License-Identifier: Apache-2.0 */
/* Adasum in one process and in long double: what the vectors of all ranks must give. */
#pragma once

#include <stddef.h>

static inline long double adasum_serial_factor(long double ab, long double own)
{
    return own < 0x1p-511L ? 1 : 1 - ab / (2 * own);
}

/* a = Adasum of a and b. */
static inline void adasum_serial_pair(long double *a, const long double *b, size_t count)
{
    long double aa = 0, bb = 0, ab = 0;
    for (size_t i = 0; i < count; i++) {
        aa += a[i] * a[i];
        bb += b[i] * b[i];
        ab += a[i] * b[i];
    }
    long double by_a = adasum_serial_factor(ab, aa), by_b = adasum_serial_factor(ab, bb);
    for (size_t i = 0; i < count; i++)
        a[i] = by_a * a[i] + by_b * b[i];
}

/* `vectors` has `count` numbers of each rank, back to back. The result is in the first ones. */
static inline void adasum_serial(long double *vectors, size_t count, int size)
{
    int power = 1;
    while (2 * power <= size)
        power *= 2;
    for (int rank = power; rank < size; rank++)
        adasum_serial_pair(vectors + (size_t)(rank - power) * count, vectors + (size_t)rank * count,
                           count);
    for (int distance = 1; distance < power; distance *= 2)
        for (int rank = 0; rank < power; rank += 2 * distance)
            adasum_serial_pair(vectors + (size_t)rank * count,
                               vectors + (size_t)(rank + distance) * count, count);
}
