/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <string.h>

void blank_trim(const char **text, size_t *length)
{
    while (*length > 0 && blank_is((*text)[0])) {
        (*text)++;
        (*length)--;
    }
    while (*length > 0 && blank_is((*text)[*length - 1]))
        (*length)--;
}

void blank_trim_comment(const char **text, size_t *length)
{
    const char *comment = memchr(*text, '#', *length);
    if (comment != NULL)
        *length = (size_t)(comment - *text);
    blank_trim(text, length);
}
