/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets on which others connect. The address is numeric, or as the user writes it: a port of the
 * loopback interface, an address with a port, or the path of a Unix socket. Code that connects to a
 * numeric address uses struct socket_address, too.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/error.h"
#include "io/loop.h"

struct listen_address {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un local;
    } at;
    socklen_t length;
    bool is_path;
};

/* "9400", "127.0.0.1:9400", "[::1]:9400", "localhost:9400" (127.0.0.1), "/run/job.sock",
 * "unix:job.sock". Port 0 lets the kernel choose. Names other than localhost are refused: to look
 * one up takes time. -1 and `err` (STATUS_USAGE). */
int listen_address_parse(const char *text, struct listen_address *out, struct error *err);

/* "http://127.0.0.1:9400", or "unix:PATH". The caller frees it. */
char *listen_address_url(const struct listen_address *address);

/* A socket address of IPv4 or IPv6. false: `text` is not a numeric address, or there is no such
 * port. */
struct socket_address {
    struct sockaddr_storage at;
    socklen_t length;
};
bool socket_address_set(struct socket_address *out, const char *text, uint32_t port);

struct listener;

/* Listens at this address, on a port that the kernel chooses, and gives each connection to `come`,
 * which owns it: non-blocking and close-on-exec. Without descriptors, it looks again later. `come`
 * may not destroy the listener. NULL: `err` says why. */
struct listener *listener_create(struct loop *loop, const char *address,
                                 void (*come)(void *context, int fd), void *context,
                                 struct error *err);
void listener_destroy(struct listener *listener); /* accepts NULL */
uint32_t listener_port(const struct listener *listener);
