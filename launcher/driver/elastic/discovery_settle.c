/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/elastic/discovery_settle.h"

#include <stdint.h>
#include <string.h>

#define LOOKS_MAX 20

static bool is_same(const struct buf *seen, bool readable, const char *bytes, size_t length)
{
    const char *has = buf_text(seen);
    return seen->length == length + 1 && (has[0] == '+') == readable &&
           memcmp(has + 1, bytes, length) == 0;
}

static void keep(struct buf *seen, bool readable, const char *bytes, size_t length)
{
    seen->limit = SIZE_MAX / 2; /* the reader limits the size */
    buf_clear(seen);
    buf_putc(seen, readable ? '+' : '-');
    buf_append(seen, bytes, length);
}

enum discovery_settled discovery_settle_look(struct discovery_settle *settle, bool readable,
                                             const char *bytes, size_t length)
{
    if (settle->any && is_same(&settle->known, readable, bytes, length)) {
        buf_clear(&settle->candidate);
        settle->looks = 0;
        return SETTLED_SAME;
    }
    settle->looks++;
    if (settle->any && settle->looks < LOOKS_MAX &&
        !is_same(&settle->candidate, readable, bytes, length)) {
        keep(&settle->candidate, readable, bytes, length);
        return SETTLED_AGAIN;
    }
    keep(&settle->known, readable, bytes, length);
    buf_clear(&settle->candidate);
    settle->any = true;
    settle->looks = 0;
    return SETTLED_NEW;
}

void discovery_settle_destroy(struct discovery_settle *settle)
{
    buf_destroy(&settle->known);
    buf_destroy(&settle->candidate);
}
