/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes of a stranger's stderr to lines that may be shown: without control characters, at most
 * SSH_LINE_MAX bytes long (the rest of a longer one is dropped), at most SSH_LINES_MAX of them;
 * after that only the last is remembered. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define SSH_LINE_MAX 240
#define SSH_LINES_MAX 50

struct ssh_lines {
    char line[SSH_LINE_MAX + 1]; /* unfinished */
    size_t length;
    char last[SSH_LINE_MAX + 1]; /* the last whole line with something in it; "" */
    int told;
};

/* `tell` may be NULL. An all-zero struct is ready. */
void ssh_lines_feed(struct ssh_lines *lines, const char *bytes, size_t length,
                    void (*tell)(void *context, const char *line), void *context);
void ssh_lines_end(struct ssh_lines *lines, void (*tell)(void *context, const char *line),
                   void *context);
