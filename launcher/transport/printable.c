/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/printable.h"

#include <stdbool.h>
#include <string.h>

#include "base/blank.h"

/* Length of the UTF-8 sequence at `at`; 0: it is not one, or a control character. */
static size_t sequence(const unsigned char *at, size_t left)
{
    size_t length = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
    if (at[0] < 0xc2 || at[0] > 0xf4 || length > left)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    }
    return at[0] == 0xc2 && at[1] < 0xa0 ? 0 : length; /* C1 controls */
}

void printable_line(const char *bytes, size_t length, char out[PRINTABLE_ROOM])
{
    size_t used = 0;
    blank_trim(&bytes, &length);
    for (size_t i = 0; i < length && used + 5 < PRINTABLE_ROOM;) {
        const unsigned char *at = (const unsigned char *)bytes + i;
        size_t wide = at[0] < 0x80 ? 0 : sequence(at, length - i);
        if (wide > 0) {
            memcpy(out + used, at, wide);
            used += wide;
            i += wide;
            continue;
        }
        out[used++] = at[0] == '\t' ? ' ' : at[0] >= 0x20 && at[0] < 0x7f ? (char)at[0] : '?';
        i++;
    }
    out[used] = '\0';
}
