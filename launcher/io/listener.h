/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets on which others connect. The address is numeric, or as the user writes it: a port of the
 * loopback interface, an address with a port, or the path of a Unix socket. Code that connects uses
 * struct socket_address and tcp_options_set(), too.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
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
int socket_port(const struct socket_address *address);

/* Listens there; the address gets the port that the kernel chose for 0. It does not block. -1 and
 * errno. */
int socket_listen(struct socket_address *at);

/* Sets TCP_NODELAY and keepalive probes, the first after 5 s of silence, then every 3 s. After
 * `dead_after_ms` without an answer, the kernel gives up, and so it does with a peer that does not
 * read. 0: no probes and no such limit, so the owner has to judge. A kernel that refuses an option
 * still carries the connection. */
void tcp_options_set(int fd, int64_t dead_after_ms);

/* Accepts connections, a few in each turn of the loop, so that thousands may come at once. Those
 * that its owner cannot take now wait in the kernel (listener_pause()). */
struct listener;

struct listener_ops { /* neither may destroy the listener */
    /* The descriptor is the receiver's: non-blocking and close-on-exec. */
    void (*come)(void *context, int fd, const struct sockaddr_storage *from);
    /* No descriptor is free for a connection that waits. The listener tries again. Called when that
     * begins, and with `for_long` every 6 s that it lasts. May be NULL. */
    void (*full)(void *context, const char *cause, bool for_long);
};

/* Borrows `ops`. Listens at this address, on a port that the kernel chooses. NULL: `err` says why.
 */
struct listener *listener_create(struct loop *loop, const char *address,
                                 const struct listener_ops *ops, void *context, struct error *err);
/* The same at a port of all addresses, IPv6 and IPv4, or of IPv4 alone where there is no other.
 * `port` 0: any that is free. NULL and errno. */
struct listener *listener_create_at(struct loop *loop, int port, const struct listener_ops *ops,
                                    void *context);
void listener_destroy(struct listener *listener);           /* accepts NULL */
void listener_pause(struct listener *listener, bool pause); /* also from within `come` */
uint32_t listener_port(const struct listener *listener);
