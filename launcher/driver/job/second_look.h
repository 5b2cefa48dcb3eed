/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second look at a host whose agent has gone silent: does anything else of it answer? It connects
 * anew to where the transport had connected, a few times within `limit_ms`, and hangs up. On a
 * lossy link a fresh handshake comes through long before a stream that has to be repeated in order.
 */
#pragma once

#include "io/loop.h"
#include "transport/transport.h"

struct second_look;

/* `answers` comes once or never. NULL: there is no way to look (no address is known). */
struct second_look *second_look_begin(struct loop *loop, const struct transport_stream *stream,
                                      int64_t limit_ms, void (*answers)(void *context),
                                      void *context);
void second_look_end(struct second_look *look); /* accepts NULL */
