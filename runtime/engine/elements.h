/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic with the elements of tensors on the CPU, for all types. */
#pragma once

#include <stddef.h>

#include "include/hvd.h"

/*
 * Reductions of two buffers: out[i] = a[i] op b[i].
 *
 * Integers wrap around. For HVD_BOOL, sum and max mean "or", product and min mean "and". Any byte
 * other than 0 is true, and results are 0 or 1. The 16-bit types are computed in float, and each
 * result is rounded to the nearest value (engine/half.h). The result of min and max is not defined
 * if an element is a NaN.
 *
 * `out` may be `a` or `b`. Otherwise the buffers must not overlap. They are aligned for the type.
 */
typedef void reduce_function(void *out, const void *a, const void *b, size_t count);

/* NULL: there is not such a type, or `op` is not one of sum, min, max and product. */
reduce_function *reduce_find(enum hvd_type type, enum hvd_op op);

/*
 * Multiplies elements by a factor: out[i] = in[i] * factor, as Horovod does.
 *
 * float32 and float64 multiply in their own type, float16 and bfloat16 in float, with one rounding.
 * Integers multiply in double and are truncated toward zero. A value that does not fit becomes the
 * largest or the smallest value of the type, and a NaN becomes 0. HVD_BOOL is copied.
 *
 * `out` may be `in`; otherwise they must not overlap. Both are aligned for the type. Factor 1 is a
 * copy.
 */
void scale_copy(enum hvd_type type, void *out, const void *in, size_t count, double factor);
