/* SPDX-License-Identifier: Apache-2.0 */
#include "model/plan/rank_ranges.h"

#define SHOWN_RANGES_MAX 8

void rank_ranges(const int *ranks, int count, struct buf *out)
{
    buf_puts(out, count == 1 ? "rank " : "ranks ");
    rank_ranges_bare(ranks, count, out);
}

void rank_ranges_bare(const int *ranks, int count, struct buf *out)
{
    for (int first = 0, shown = 0; first < count; shown++) {
        int last = first;
        while (last + 1 < count && ranks[last + 1] == ranks[last] + 1)
            last++;
        if (shown == SHOWN_RANGES_MAX) {
            buf_puts(out, ",...");
            return;
        }
        buf_printf(out, last > first ? "%s%d-%d" : "%s%d", shown > 0 ? "," : "", ranks[first],
                   ranks[last]);
        first = last + 1;
    }
}
