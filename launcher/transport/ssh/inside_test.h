/* SPDX-License-Identifier: Apache-2.0 */
/* What only the tests of config.c and stream.c use. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "io/loop.h"
#include "transport/ssh_module/ssh_module.h"

#define SSH_CONFIG_LINE_MAX 8192

/* Takes a line off the front of `*text`, without blanks around it; the caller frees it. False:
 * there is none. `*line` is NULL when it is too long, or no text. */
bool ssh_config_line_next(const char **text, size_t *left, char **line);

/* The pump of stream.c. */
struct pump;

struct pump_events {
    void (*line)(void *context, const char *line); /* of stderr; printable, bounded */
    /* `why` is one line. The pump may be destroyed in here. */
    void (*ended)(void *context, const char *why);
};

/* Borrows module and session, and the connection `ssh_fd`; takes `local_fd` and makes it
 * non-blocking. */
struct pump *pump_create(struct loop *loop, const struct ssh_module *module,
                         struct ssh_session *session, int ssh_fd, int local_fd,
                         const struct pump_events *events, void *context);
void pump_destroy(struct pump *pump); /* closes the local end; accepts NULL */
