/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a session whose shell runs to an agent's stream: the pump, and on its far end the boot
 * dialogue first, then the caller.
 */
#pragma once

#include <stddef.h>

#include "io/loop.h"
#include "transport/ssh_module/ssh_module.h"
#include "transport/transport.h"

struct ssh_stream_events {
    void (*stage)(void *context, enum transport_stage stage);
    void (*up)(void *context, int fd); /* the receiver's now */
    /* Before `up`. The stream may be destroyed in here. */
    void (*failed)(void *context, enum transport_stage stage, const char *why);
    /* After `up`; then the end of file is seen. The stream may be destroyed in here. */
    void (*lost)(void *context, const char *why);
    void (*line)(void *context, const char *line); /* of the host's stderr */
};

struct ssh_stream;

/* Borrows everything, until destroy. NULL: `err` says why. */
struct ssh_stream *ssh_stream_create(const struct transport_room *room,
                                     const struct ssh_module *module, struct ssh_session *session,
                                     int ssh_fd, int node, const struct ssh_stream_events *events,
                                     void *context, struct error *err);
/* Before the session and its descriptor; accepts NULL. */
void ssh_stream_destroy(struct ssh_stream *stream);
