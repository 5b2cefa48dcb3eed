/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of elements need, and nobody else. */
#pragma once

#include "engine/elements.h"

/* What reduce_find() returns for HVD_FLOAT16 and HVD_BFLOAT16 on a processor without AVX2. */
reduce_function *reduce_find_portable(enum hvd_type type, enum hvd_op op);

/* What scale_copy() uses there for these types. `factor` is made a float before. */
typedef void scale_function(void *out, const void *in, size_t count, double factor);
scale_function *scale_find_portable(enum hvd_type type);
