/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A TCP connection to the first of several addresses that answers ("happy eyeballs"). The families
 * take turns. The next address is tried when the one before has failed, or after DIAL_STAGGER_MS.
 * The first to connect is kept and the others are closed.
 *
 * The socket is non-blocking and close-on-exec and has TCP_NODELAY and keepalive probes (the first
 * after 5 s of silence, then every 3 s). The kernel gives up after `dead_after_ms` without an
 * answer.
 */
#pragma once

#include <stdint.h>

#include "io/loop.h"
#include "transport/resolve.h"

#define DIAL_STAGGER_MS 250

struct dial_result {
    int fd;        /* the receiver's; -1: `why` says why */
    char peer[64]; /* numeric address */
    char why[256]; /* one line: cause and remedy */
};

struct dial;

/* The addresses are copied. `done` comes once, from the loop, never from within this call; the dial
 * is gone after it. An sshd should listen there, the messages say. */
struct dial *dial_start(struct loop *loop, const struct resolve_result *addresses, int port,
                        int64_t limit_ms, int64_t dead_after_ms,
                        void (*done)(void *context, const struct dial_result *result),
                        void *context);
void dial_cancel(struct dial *dial); /* accepts NULL */

/* The order in which addresses are tried: the families take turns, beginning with that of the
 * first. `order` has room for addresses->count indices. */
void dial_order(const struct resolve_result *addresses, size_t *order);

/* Numeric, without the port; an IPv4 address that an IPv6 socket shows is printed as IPv4. */
void dial_address_text(const struct sockaddr_storage *address, char *text, size_t room);
