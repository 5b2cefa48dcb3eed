/* SPDX-License-Identifier: Apache-2.0 */
#include "output/stamp.h"

#include <string.h>

/* A copy whose length the compiler knows is a few instructions, so short labels are copied with
 * what stands behind them, and the line goes over that. */
#define SHORT 32

struct padded_label {
    const char *bytes;
    size_t length;
    char padded[SHORT];
};

static void put_label(char *out, const struct padded_label *label)
{
    if (label->length <= SHORT)
        memcpy(out, label->padded, SHORT);
    else
        memcpy(out, label->bytes, label->length);
}

size_t stamp_lines(struct stamp *stamp, char *out, size_t room)
{
    struct padded_label label = {stamp->label, stamp->label_length, ""};
    if (label.length > 0 && label.length <= SHORT)
        memcpy(label.padded, label.bytes, label.length);
    const char *at = stamp->text, *end = at + stamp->length;
    char *to = out, *limit = out + room;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t line = (size_t)((newline != NULL ? newline + 1 : end) - at);
        size_t left = (size_t)(limit - to);
        if (left < SHORT || left - SHORT < label.length + line)
            break;
        put_label(to, &label);
        memcpy(to + label.length, at, line);
        to += label.length + line;
        at += line;
    }
    stamp->length = (size_t)(end - at);
    stamp->text = at;
    return (size_t)(to - out);
}
