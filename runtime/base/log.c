/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "base/plain.h"

void log_print(const struct log *log, enum log_level level, const char *format, ...)
{
    if (log == NULL || log->emit == NULL || level > log->level)
        return;
    char line[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    plain_text(line);
    log->emit(log->context, level, line);
}
