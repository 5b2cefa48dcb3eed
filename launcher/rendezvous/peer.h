/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user of the process at the other end of a TCP connection within this machine.
 *
 * A NETLINK_SOCK_DIAG socket asks the kernel for the peer's socket by its exact four-tuple. That
 * takes some microseconds, however many sockets there are. Where that family is not available (a
 * sandbox), /proc/net/tcp is searched instead. IPv4 only, like the clients.
 */
#pragma once

#include <netinet/in.h>
#include <stddef.h>
#include <sys/types.h>

struct rendezvous_peer;

struct rendezvous_peer *rendezvous_peer_create(void);
void rendezvous_peer_destroy(struct rendezvous_peer *peer);

/* The user that created the socket to which `fd` is connected. -1: it is not a socket of this
 * machine, or it has been closed. */
int rendezvous_peer_uid(struct rendezvous_peer *peer, int fd, uid_t *uid);

/* The fallback's pure part: looks up a socket by its two ends in the text of /proc/net/tcp. */
int rendezvous_peer_find(const char *text, size_t length, const struct sockaddr_in *local,
                         const struct sockaddr_in *remote, uid_t *uid);
