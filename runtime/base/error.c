/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

static void fill(struct error *err, int status, int errnum, const char *format, va_list args)
{
    if (err == NULL)
        return;
    err->status = status;
    err->errnum = errnum;
    int used = vsnprintf(err->text, sizeof(err->text), format, args);
    if (errnum == 0 || used < 0 || (size_t)used >= sizeof(err->text))
        return;
    char reason[128];
    snprintf(err->text + used, sizeof(err->text) - (size_t)used, ": %s%s",
             strerror_r(errnum, reason, sizeof(reason)),
             errnum == EMFILE ? " (ulimit -n sets the limit)" : "");
}

int error_set(struct error *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fill(err, 0, 0, format, args);
    va_end(args);
    return -1;
}

int error_status(struct error *err, int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fill(err, status, 0, format, args);
    va_end(args);
    return -1;
}

int error_usage(struct error *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fill(err, STATUS_USAGE, 0, format, args);
    va_end(args);
    return -1;
}

int error_errno(struct error *err, int errnum, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fill(err, 0, errnum, format, args);
    va_end(args);
    return -1;
}

static void wrap(struct error *err, const char *format, va_list args)
{
    char inner[ERROR_TEXT_MAX];
    memcpy(inner, err->text, sizeof(inner));
    int used = vsnprintf(err->text, sizeof(err->text), format, args);
    if (used >= 0 && (size_t)used < sizeof(err->text))
        snprintf(err->text + used, sizeof(err->text) - (size_t)used, ": %.*s",
                 ERROR_TEXT_MAX - 4 - used, inner);
}

int error_wrap(struct error *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (err != NULL)
        wrap(err, format, args);
    va_end(args);
    return -1;
}

int error_wrap_usage(struct error *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (err != NULL) {
        err->status = STATUS_USAGE;
        wrap(err, format, args);
    }
    va_end(args);
    return -1;
}
