/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

#include <stdint.h>
#include <string.h>

#include "base/text.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int digit_value(char c)
{
    const char *at = c != '\0' ? strchr(alphabet, c) : NULL;
    return at != NULL ? (int)(at - alphabet) : -1;
}

ssize_t base64_decode(const char *text, size_t length, unsigned char *out)
{
    size_t digits = 0, padding = 0, written = 0;
    uint32_t bits = 0;
    for (size_t i = 0; i < length; i++) {
        if (text_is_blank(text[i]))
            continue;
        if (text[i] == '=') {
            padding++;
            continue;
        }
        int value = digit_value(text[i]);
        if (value < 0 || padding > 0)
            return -1;
        bits = bits << 6 | (uint32_t)value;
        digits++;
        if (digits % 4 == 0) {
            out[written++] = (unsigned char)(bits >> 16);
            out[written++] = (unsigned char)(bits >> 8);
            out[written++] = (unsigned char)bits;
        }
    }
    if (padding > 2 || (digits + padding) % 4 != 0)
        return -1;
    if (digits % 4 == 3) {
        out[written++] = (unsigned char)(bits >> 10);
        out[written++] = (unsigned char)(bits >> 2);
    } else if (digits % 4 == 2) {
        out[written++] = (unsigned char)(bits >> 4);
    }
    return (ssize_t)written;
}
