/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/printable.h"

#include <stdbool.h>
#include <string.h>

#include "base/blank.h"
#include "base/plain.h"

void printable_line(const char *bytes, size_t length, char out[PRINTABLE_ROOM])
{
    size_t used = 0;
    blank_trim(&bytes, &length);
    for (size_t i = 0; i < length && used + 5 < PRINTABLE_ROOM;) {
        const unsigned char *at = (const unsigned char *)bytes + i;
        size_t wide = plain_character(bytes + i, length - i);
        bool is_high = wide == 2 && at[0] == 0xc2 && at[1] < 0xa0; /* controls of two bytes */
        if (wide > 1 && !is_high) {
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
