/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose process is at the other end of a TCP connection within this machine?
 *
 * The kernel is asked for the peer's socket by its exact four-tuple through a NETLINK_SOCK_DIAG
 * socket: some microseconds, however many sockets there are. Where that family is not available
 * (a sandbox), /proc/net/tcp is searched instead. IPv4 only, as the clients are.
 */
#pragma once

#include <netinet/in.h>
#include <stddef.h>
#include <sys/types.h>

struct rendezvous_peer;

struct rendezvous_peer *rendezvous_peer_create(void);
void rendezvous_peer_destroy(struct rendezvous_peer *peer);

/* The user who made the socket that `fd`, a connected socket, is connected to. -1: it is not a
 * socket of this machine, or it has gone. */
int rendezvous_peer_uid(struct rendezvous_peer *peer, int fd, uid_t *uid);

/* The fallback's pure part: looks up a socket by its two ends in the text of /proc/net/tcp. */
int rendezvous_peer_find(const char *text, size_t length, const struct sockaddr_in *local,
                         const struct sockaddr_in *remote, uid_t *uid);
