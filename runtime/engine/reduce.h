/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions of two buffers on the CPU: out[i] = a[i] op b[i], for all types and operations.
 *
 * Integers wrap around. For HVD_BOOL, sum and max mean "or", product and min mean "and". Any byte
 * other than 0 is true, and results are 0 or 1. The 16-bit types are computed in float, and each
 * result is rounded to the nearest value (engine/half.h). The result of min and max is not defined
 * if an element is a NaN.
 */
#pragma once

#include <stddef.h>

#include "include/hvd.h"

/* out[i] = a[i] op b[i]. `out` may be `a` or `b`. Otherwise the buffers must not overlap. They are
 * aligned for the type. */
typedef void reduce_function(void *out, const void *a, const void *b, size_t count);

/* NULL: there is not such a type, or `op` is not one of sum, min, max and product. */
reduce_function *reduce_find(enum hvd_type type, enum hvd_op op);
