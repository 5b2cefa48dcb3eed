/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second look at a host whose agent has gone silent: does the host still answer? It opens new
 * connections to the address that the transport used, several times within `limit_ms`, and closes
 * them. On a lossy link a new handshake succeeds long before a stream that must repeat its segments
 * in order.
 */
#pragma once

#include "io/loop.h"
#include "transport/transport.h"

struct second_look;

/* `answers` comes once or never. NULL: there is no known address to connect to. */
struct second_look *second_look_begin(struct loop *loop, const struct transport_stream *stream,
                                      int64_t limit_ms, void (*answers)(void *context),
                                      void *context);
void second_look_end(struct second_look *look); /* accepts NULL */
