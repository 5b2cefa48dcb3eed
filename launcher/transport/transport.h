/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transports: ways to get an agent onto a node and a duplex stream to it. Each is a const table of
 * functions with a context of its own; nobody compares their names. The stream is the job's only
 * connection to the node (D2).
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct transport_target {
    const char *host; /* as in the plan */
    int node;
};

struct transport_stream {
    int read_fd, write_fd; /* may be equal; the caller owns them */
    pid_t pid;             /* of the child behind it; 0: none */
    bool same_machine;     /* its processes are our descendants */
};

struct transport {
    const char *name;
    int (*start)(void *context, const struct transport_target *target,
                 struct transport_stream *stream, struct error *err);
    void *context;
};
