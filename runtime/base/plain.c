/* SPDX-License-Identifier: Apache-2.0 */
#include "base/plain.h"

#include <stdbool.h>
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
