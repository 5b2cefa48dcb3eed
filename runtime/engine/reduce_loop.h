/* SPDX-License-Identifier: Apache-2.0 */
/* The form of a reduction (engine/reduce.h), and what its loops need. */
#pragma once

#include <stddef.h>

/* out[i] = a[i] op b[i]. `out` may be `a` or `b`. Otherwise the buffers must not overlap. They are
 * aligned for the type. */
typedef void reduce_function(void *out, const void *a, const void *b, size_t count);

/* INDEPENDENT before a loop says that no turn reads what another turn writes. The compiler cannot
 * see that when the output may be an input, at the same place, and would not vectorize the loop. */
#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif
