/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

void log_make_plain(char *text)
{
    for (char *at = text; *at != '\0'; at++) {
        unsigned char byte = (unsigned char)*at, next = (unsigned char)at[1];
        bool is_control = (byte < ' ' && byte != '\n' && byte != '\t') || byte == 0x7f;
        bool is_high = byte == 0xc2 && next >= 0x80 && next < 0xa0; /* U+0080 to U+009F */
        if (is_control || is_high)
            *at = '?';
        if (is_high)
            *++at = '?';
    }
}

void log_print(const struct log *log, enum log_level level, const char *format, ...)
{
    if (log == NULL || log->emit == NULL || level > log->level)
        return;
    char line[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    log_make_plain(line);
    log->emit(log->context, level, line);
}
