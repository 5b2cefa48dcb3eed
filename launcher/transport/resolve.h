/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names to addresses without blocking the loop.
 *
 * A numeric address is answered at once. One of a few detached helper threads, with all signals
 * blocked, looks up a name. Only getaddrinfo(3) follows the machine's own rules (hosts file,
 * nsswitch, search domains), and it blocks. A lookup that outlasts its deadline is abandoned: its
 * thread keeps alive what it needs, and nothing waits for it. A name that is asked for twice at the
 * same time is looked up once.
 */
#pragma once

#include <netdb.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "io/loop.h"

#define RESOLVE_ADDRESSES_MAX 32
#define RESOLVE_THREADS_MAX 16

/* Ports are 0. */
struct resolve_result {
    struct sockaddr_storage addresses[RESOLVE_ADDRESSES_MAX]; /* in the order of preference */
    size_t count;                                             /* 0: `why` says why */
    char why[256];                                            /* one line: cause and remedy */
};

/* As getaddrinfo(3), for a stream socket of `family`. Called in helper threads. */
typedef int (*resolve_lookup)(const char *name, int family, struct addrinfo **found);

struct resolver;
struct resolve_request;

/* `lookup` NULL: the machine's. */
struct resolver *resolver_create(struct loop *loop, resolve_lookup lookup, struct error *err);
void resolver_destroy(struct resolver *resolver); /* drops open requests; accepts NULL */

/* `family`: AF_UNSPEC, AF_INET or AF_INET6. `done` comes once, from the loop, never from within
 * this call; the result is borrowed for the call, and the request is gone after it. */
struct resolve_request *
resolver_ask(struct resolver *resolver, const char *name, int family, int64_t limit_ms,
             void (*done)(void *context, const struct resolve_result *result), void *context);
void resolver_cancel(struct resolve_request *request); /* accepts NULL */
