/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inputs and results of the property tests. Element i of rank r is a function of i and r, so
 * every rank knows the input of all ranks. Integers must be equal. Floating-point results are
 * compared with one in long double, and may differ by one rounding for each rank.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/hvd.h"

uint64_t values_seed(int rank, size_t i);

/* Elements first to first + count of the rank's input. Magnitudes of real numbers are 0.5 to 2. */
void values_write(enum hvd_type type, int rank, size_t first, size_t count, void *to);

struct reduction {
    enum hvd_type type;
    enum hvd_op op; /* not the average: a sum with a scale is one */
    int size;
    const int *ranks; /* of those that take part; NULL: all from 0 */
    double prescale, postscale;
};

/* `result` must have elements first to first + count of the reduction. Otherwise it ends the
 * program. */
void values_check(const char *what, const struct reduction *reduction, size_t first, size_t count,
                  const void *result);
