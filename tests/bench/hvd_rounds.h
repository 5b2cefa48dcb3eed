/* SPDX-License-Identifier: Apache-2.0 */
/* libhvd beside a bare library, in turns. Rank 0 prints one line for each round: "NAME BARE HVD",
 * the last two in microseconds. */
#pragma once

#include <stddef.h>

typedef void bare_allreduce(void *context, float *data, size_t count);

/* After hvd_init(). `only`: the name of a row; NULL: all rows. */
void hvd_rounds(bare_allreduce *bare, void *context, int rounds, const char *only);
