/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/avx2.h"

#if HAVE_AVX2
#include <cpuid.h>

bool avx2_is_here(void)
{
    unsigned a, b, c = 0, d; /* not every compiler's cpu_supports knows f16c */
    return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) != 0;
}
#endif
