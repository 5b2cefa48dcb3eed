/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the PMIx library prints to standard error while it works for us: plugins of another version,
 * no compression, no space. It prints before any caller knows whether that matters. So the lines
 * become messages for -v, and the caller's own error says what matters.
 */
#pragma once

#include <stddef.h>

struct server;

struct complaints {
    int file, stderr_fd; /* -1: standard error stays as it is */
};

/* Between these two, standard error of the process is a file of our own. For the loop's thread
 * only. */
void complaints_begin(struct complaints *complaints);
/* Tells each line that was printed, without its end. */
void complaints_end(struct complaints *complaints,
                    void (*tell)(const struct server *server, const char *line, size_t length),
                    const struct server *server);
