/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of stream alone. */
#pragma once

#include <stddef.h>

#include "io/loop.h"
#include "transport/ssh/stream.h"
#include "transport/ssh_module/ssh_module.h"

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
