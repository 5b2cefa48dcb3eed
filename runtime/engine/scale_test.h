/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of scale need, and nobody else. */
#pragma once

#include "engine/scale.h"

/* out[i] = in[i] * factor, where `factor` is made a float before. As scale_copy(). */
typedef void scale_function(void *out, const void *in, size_t count, double factor);

scale_function *scale_find_fp16(void);
scale_function *scale_find_bf16(void);

/* The same without the instructions that not every processor has. For tests. */
scale_function *scale_find_fp16_portable(void);
scale_function *scale_find_bf16_portable(void);
