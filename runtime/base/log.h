/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of the launcher itself. A log is an object that callers pass on, never a global. In the
 * driver its lines go to the output room, which alone owns the terminal. In an agent each line
 * becomes a LOG frame.
 */
#pragma once

enum log_level { LOG_ERROR, LOG_WARNING, LOG_NOTICE, LOG_INFO, LOG_DEBUG };

struct log {
    enum log_level level; /* log_print() drops messages above it before it formats them */
    void (*emit)(void *context, enum log_level level, const char *line); /* no newline at the end */
    void *context;
};

void log_print(const struct log *log, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define log_error(log, ...) log_print((log), LOG_ERROR, __VA_ARGS__)
#define log_warning(log, ...) log_print((log), LOG_WARNING, __VA_ARGS__)
#define log_notice(log, ...) log_print((log), LOG_NOTICE, __VA_ARGS__)
#define log_info(log, ...) log_print((log), LOG_INFO, __VA_ARGS__)
#define log_debug(log, ...) log_print((log), LOG_DEBUG, __VA_ARGS__)
