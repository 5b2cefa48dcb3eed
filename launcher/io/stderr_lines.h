/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns the bytes of another program's stderr into lines that may be shown: without control
 * characters, at most STDERR_LINE_MAX bytes long (the rest of a longer line is dropped), and at
 * most STDERR_LINES_MAX of them. After that only the last line is remembered. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define STDERR_LINE_MAX 240
#define STDERR_LINES_MAX 50

struct stderr_lines {
    char line[STDERR_LINE_MAX + 1]; /* unfinished */
    size_t length;
    char last[STDERR_LINE_MAX + 1]; /* the last whole line with something in it; "" */
    int told;
};

/* `tell` may be NULL. An all-zero struct is ready. */
void stderr_lines_feed(struct stderr_lines *lines, const char *bytes, size_t length,
                       void (*tell)(void *context, const char *line), void *context);
void stderr_lines_end(struct stderr_lines *lines, void (*tell)(void *context, const char *line),
                      void *context);
