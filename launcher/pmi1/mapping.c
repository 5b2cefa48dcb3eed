/* SPDX-License-Identifier: Apache-2.0 */
#include "pmi1/mapping.h"

#include "base/buf.h"

char *mapping_text(const int *ranks_on, int nodes, int limit)
{
    struct buf text AUTO_BUF = BUF_INIT((size_t)limit);
    int full = buf_puts(&text, "(vector");
    for (int first = 0; first < nodes && full == 0;) {
        int next = first + 1;
        while (next < nodes && ranks_on[next] == ranks_on[first])
            next++;
        if (ranks_on[first] > 0)
            full = buf_printf(&text, ",(%d,%d,%d)", first, next - first, ranks_on[first]);
        first = next;
    }
    if (full == 0)
        full = buf_putc(&text, ')');
    return full == 0 ? buf_take(&text) : NULL;
}
