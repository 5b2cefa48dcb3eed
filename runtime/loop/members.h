/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks that a program wants in a process set: pure. */
#pragma once

#include <stdint.h>

#include "base/error.h"

/* The ranks ascending, for the caller to free. NULL: they are not those of a process set of a job
 * with `size` ranks; the error says why. */
int *members_sorted(const int32_t *ranks, int32_t count, int size, struct error *err);
/* All ranks of a job with `size` ranks, for the caller to free. */
int *members_all(int size);
