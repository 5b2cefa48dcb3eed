/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transport `dial`: agents that somebody else starts, such as Kubernetes, dial in to a port
 * that they know (transport/dial_back.h). A call waits for the agent of its host.
 *
 *   call -> its agent has come                 up
 *        -> limit_ms has passed                failed (a job with a fixed set of hosts)
 */
#pragma once

#include <stdint.h>

#include "transport/dial_back.h"
#include "transport/transport.h"

struct dial_in_settings {
    const struct transport_room *room;
    const char *module_path; /* of hvdrun-tls.so */
    const char *secret_file; /* NULL: whoever knows the id comes in */
    const char *id;          /* of the run */
    int port;
    int64_t limit_ms; /* for an agent to come, from its call; 0: agents come and go */
    int nodes;        /* that may come at the same time, as far as they are known */
    /* As in dial_back.h: hosts that are in no list. May be NULL. */
    const char *(*stranger)(void *context, const char *name);
    /* A line that belongs to no call: refused connections. */
    void (*note)(void *context, enum log_level level, const char *line);
    void *context;
};

struct dial_in;

/* The settings are borrowed. NULL: no TLS, no such secret, or the port is not free. */
struct dial_in *dial_in_create(const struct dial_in_settings *settings, struct error *err);
void dial_in_destroy(struct dial_in *in); /* after the last hang_up; accepts NULL */
struct transport dial_in_transport(struct dial_in *in);
