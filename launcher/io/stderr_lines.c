/* SPDX-License-Identifier: Apache-2.0 */
#include "io/stderr_lines.h"

#include <string.h>

void stderr_lines_end(struct stderr_lines *lines, void (*tell)(void *context, const char *line),
                      void *context)
{
    while (lines->length > 0 && lines->line[lines->length - 1] == ' ')
        lines->length--;
    lines->line[lines->length] = '\0';
    if (lines->length == 0)
        return;
    memcpy(lines->last, lines->line, lines->length + 1);
    lines->length = 0;
    if (lines->told++ < STDERR_LINES_MAX && tell != NULL)
        tell(context, lines->last);
    else if (lines->told > STDERR_LINES_MAX)
        lines->told = STDERR_LINES_MAX + 1;
}

void stderr_lines_feed(struct stderr_lines *lines, const char *bytes, size_t length,
                       void (*tell)(void *context, const char *line), void *context)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        if (byte == '\n') {
            stderr_lines_end(lines, tell, context);
            continue;
        }
        if (byte == '\t')
            byte = ' ';
        if (byte < 0x20 || byte == 0x7f || lines->length == STDERR_LINE_MAX)
            continue;
        lines->line[lines->length++] = (char)byte;
    }
}
