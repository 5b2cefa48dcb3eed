/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks as text: "rank 3", "ranks 0-7,9". Pure. */
#pragma once

#include "base/buf.h"

/* Appends the `count` ranks, which are in ascending order; at least one. The text is bounded: after
 * 8 ranges it ends with ",...". */
void rank_ranges(const int *ranks, int count, struct buf *out);
void rank_ranges_bare(const int *ranks, int count, struct buf *out); /* "3", "0-7,9" */
