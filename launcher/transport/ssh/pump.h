/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pump passes bytes between an SSH session in SSH_STATE_OPEN and one end of a local socketpair.
 * So all code above sees an ordinary stream. Each direction has a buffer of PUMP_BUFFER bytes and
 * back-pressure: what the other side does not take is not read. The channel's stderr comes out as
 * lines.
 *
 * When the channel or the connection ends, what has arrived is passed on first. Then `ended` comes
 * once, and the owner closes the pump and with it the local end: its reader sees end of file. When
 * the local side ends, the channel gets end of file and the pump goes on reading.
 */
#pragma once

#include <stddef.h>

#include "io/loop.h"
#include "transport/ssh_module/ssh_module.h"

#define PUMP_BUFFER ((size_t)128 << 10)

struct pump_events {
    void (*line)(void *context, const char *line); /* of stderr; printable, bounded */
    /* `why` is one line. The pump may be destroyed in here. */
    void (*ended)(void *context, const char *why);
};

struct pump;

/* Borrows module and session, and the connection `ssh_fd`; takes `local_fd` and makes it
 * non-blocking. */
struct pump *pump_create(struct loop *loop, const struct ssh_module *module,
                         struct ssh_session *session, int ssh_fd, int local_fd,
                         const struct pump_events *events, void *context);
void pump_destroy(struct pump *pump); /* closes the local end; accepts NULL */

/* Of the command, as the session ended: 0 to 255, 128 + N for signal N; -1: not known. */
int pump_exit_status(const struct pump *pump);
const char *pump_last_line(const struct pump *pump); /* of stderr; "" when there was none */
