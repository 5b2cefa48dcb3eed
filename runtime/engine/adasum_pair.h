/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of Adasum for two vectors, of which the caller may have only a part. */
#pragma once

#include <stddef.h>

#include "include/hvd.h"

/* a.a, b.b and a.b. Those of a whole vector are the sums of those of its parts. */
struct adasum_dots {
    double aa, bb, ab;
};

/* The functions for one type. */
struct adasum_pair {
    /* Adds the products of `count` elements to `dots`. */
    void (*multiply)(const void *a, const void *b, size_t count, struct adasum_dots *dots);
    /* Combines `count` elements. `out` may be `a` or `b`. `dots` are those of the whole vectors. */
    void (*combine)(void *out, const void *a, const void *b, size_t count,
                    const struct adasum_dots *dots);
};

/* NULL: Adasum does not have this type. */
const struct adasum_pair *adasum_pair_find(enum hvd_type type);
