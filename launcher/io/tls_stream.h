/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A TLS session in TLS_OPEN as a plain stream. Bytes pass between it and one end of a local
 * socketpair; the owner reads and writes the other end as if there were no TLS. Each direction has
 * a buffer of TLS_STREAM_BUFFER bytes and back-pressure: what the other side does not take is not
 * read.
 *
 * When the peer ends, what has arrived is passed on first. Then the local end is closed (its reader
 * sees end of file) and `ended` comes. When the local side ends, what it has written is sent first.
 * Then the connection is ended and `ended` comes.
 */
#pragma once

#include "io/loop.h"
#include "io/tls_module.h"

#define TLS_STREAM_BUFFER ((size_t)128 << 10)

struct tls_stream;

/* `why` is one line, NULL when the connection did not break. Once; the stream may be destroyed in
 * here. Comes right before the local end is closed. */
typedef void tls_stream_ended(void *context, const char *why);

/* Takes session and descriptor of `end`. `*local_fd` is the caller's. NULL: out of descriptors;
 * `end` stays the caller's then. */
struct tls_stream *tls_stream_create(struct loop *loop, const struct tls_end *end, int *local_fd,
                                     tls_stream_ended *ended, void *context, struct error *err);
void tls_stream_destroy(struct tls_stream *stream); /* hangs up; accepts NULL */
