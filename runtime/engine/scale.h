/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Multiplies elements by a factor: out[i] = in[i] * factor, as Horovod does.
 *
 * float32 and float64 multiply in their own type, float16 and bfloat16 in float, with one rounding.
 * Integers multiply in double and are truncated toward zero. A value that does not fit becomes the
 * largest or the smallest value of the type, and a NaN becomes 0. HVD_BOOL is copied.
 */
#pragma once

#include <stddef.h>

#include "include/hvd.h"

/* `out` may be `in`; otherwise they must not overlap. Both are aligned for the type. Factor 1 is a
 * copy. */
void scale_copy(enum hvd_type type, void *out, const void *in, size_t count, double factor);
