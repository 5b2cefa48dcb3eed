/* SPDX-License-Identifier: Apache-2.0 */
#include "output/tail.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Half as much again, so that small writes do not move everything each time. */
#define ROOM (TAIL_BYTES + TAIL_BYTES / 2)

void tail_destroy(struct tail *tail)
{
    buf_destroy(&tail->recent);
    tail->cut = false;
    free(tail->text);
    tail->text = NULL;
}

void tail_add(struct tail *tail, const void *bytes, size_t length)
{
    if (tail->recent.limit == 0)
        buf_init(&tail->recent, ROOM);
    if (length > TAIL_BYTES) {
        bytes = (const char *)bytes + length - TAIL_BYTES;
        length = TAIL_BYTES;
        tail->cut = true;
    }
    if (tail->recent.length + length > ROOM) {
        buf_consume(&tail->recent, tail->recent.length + length - TAIL_BYTES);
        tail->cut = true;
    }
    buf_append(&tail->recent, bytes, length);
}

/* The length of the UTF-8 sequence at `text`, 0 when it is none. */
static size_t utf8_length(const unsigned char *text, size_t length)
{
    uint32_t lead = text[0];
    size_t wanted = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (wanted <= 1)
        return wanted;
    if (lead > 0xF4 || wanted > length)
        return 0;
    for (size_t i = 1; i < wanted; i++)
        if ((text[i] & 0xC0) != 0x80)
            return 0;
    bool overlong = (lead == 0xE0 && text[1] < 0xA0) || (lead == 0xF0 && text[1] < 0x90);
    bool surrogate = lead == 0xED && text[1] > 0x9F;
    bool too_high = lead == 0xF4 && text[1] > 0x8F;
    return overlong || surrogate || too_high ? 0 : wanted;
}

static void clean(char *text, size_t length)
{
    size_t at = 0;
    while (at < length) {
        size_t one = text[at] == '\0' ? 0 : utf8_length((unsigned char *)text + at, length - at);
        if (one == 0)
            text[at] = '?';
        at += one == 0 ? 1 : one;
    }
}

const char *tail_text(struct tail *tail)
{
    free(tail->text);
    const char *bytes = buf_text(&tail->recent);
    const char *end = bytes + tail->recent.length;
    while (end > bytes && (end[-1] == '\n' || end[-1] == '\r'))
        end--;
    const char *start = end - bytes > TAIL_BYTES ? end - TAIL_BYTES : bytes;
    const char *from = end;
    for (int lines = 0; lines < TAIL_LINES && from > start; lines++) {
        const char *newline = memrchr(start, '\n', (size_t)(from - start));
        from = newline != NULL ? newline : start;
    }
    from += from < end && *from == '\n';
    /* cut in the middle of a sequence: begin behind it */
    bool cut = from > bytes ? from[-1] != '\n' : tail->cut;
    while (cut && from < end && ((unsigned char)*from & 0xC0) == 0x80)
        from++;
    tail->text = mem_alloc((size_t)(end - from) + 1);
    memcpy(tail->text, from, (size_t)(end - from));
    clean(tail->text, (size_t)(end - from));
    return tail->text;
}
