/* SPDX-License-Identifier: Apache-2.0 */
/* Factors with which operations multiply. They are compared by their bits: all ranks must multiply
 * with the same one, and a NaN counts. */
#pragma once

#include <stdbool.h>
#include <string.h>

static inline bool factor_equals(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

/* Whether a product with the factor changes nothing. A NaN is not a one. */
static inline bool factor_is_one(double factor)
{
    return factor_equals(factor, 1);
}
