/* SPDX-License-Identifier: Apache-2.0 */
#include "base/plain.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static void replace(char *text, const char *except, char instead)
{
    for (char *at = text; *at != '\0'; at++) {
        unsigned char byte = (unsigned char)*at, next = (unsigned char)at[1];
        bool is_control = (byte < ' ' && strchr(except, byte) == NULL) || byte == 0x7f;
        bool is_high = byte == 0xc2 && next >= 0x80 && next < 0xa0; /* U+0080 to U+009F */
        if (is_control || is_high)
            *at = instead;
        if (is_high)
            *++at = instead;
    }
}

void plain_text(char *text)
{
    replace(text, "\n\t", '?');
}

void plain_line(char *text, char instead)
{
    replace(text, "", instead);
}

size_t plain_character(const char *text, size_t length)
{
    const unsigned char *at = (const unsigned char *)text;
    uint32_t lead = length > 0 ? at[0] : 0xff;
    size_t wanted = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (wanted <= 1)
        return wanted;
    if (lead > 0xf4 || wanted > length)
        return 0;
    for (size_t i = 1; i < wanted; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    }
    bool overlong = (lead == 0xe0 && at[1] < 0xa0) || (lead == 0xf0 && at[1] < 0x90);
    bool surrogate = lead == 0xed && at[1] > 0x9f;
    bool too_high = lead == 0xf4 && at[1] > 0x8f;
    return overlong || surrogate || too_high ? 0 : wanted;
}

void plain_valid(char *text, size_t length)
{
    size_t at = 0;
    while (at < length) {
        size_t one = text[at] == '\0' ? 0 : plain_character(text + at, length - at);
        if (one == 0)
            text[at] = '?';
        at += one == 0 ? 1 : one;
    }
}

size_t plain_cut(const char *text, size_t max)
{
    while (max > 0 && ((unsigned char)text[max] & 0xc0) == 0x80)
        max--;
    return max;
}

#define SHOWN_MAX (sizeof(((struct plain_shown *)NULL)->text) - 4)

struct plain_shown plain_show(const char *text, size_t length)
{
    struct plain_shown shown = {{0}};
    size_t used = length < SHOWN_MAX ? length : SHOWN_MAX;
    for (size_t i = 0; i < used; i++)
        shown.text[i] = text[i] >= 0x20 && text[i] < 0x7f ? text[i] : '?';
    if (length > used)
        memcpy(shown.text + used, "...", 4);
    return shown;
}
