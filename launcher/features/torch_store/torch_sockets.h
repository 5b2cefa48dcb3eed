/* SPDX-License-Identifier: Apache-2.0 */
/* Connections to a store, in the text of /proc/net/tcp or tcp6. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct torch_peer { /* numeric, without a "::ffff:" in front of IPv4 */
    char address[48];
    int port;
};

struct torch_socket {
    uint64_t inode;
    struct torch_peer local;
};

struct torch_sockets {          /* all zero: none */
    struct torch_socket *items; /* owned */
    size_t count, room;
};

/* Adds the sockets that are connected to `store`. What cannot be read is left out. */
void torch_sockets_add(struct torch_sockets *sockets, const char *text,
                       const struct torch_peer *store);
void torch_sockets_destroy(struct torch_sockets *sockets);
const struct torch_socket *torch_sockets_find(const struct torch_sockets *sockets, uint64_t inode);

/* The text of an IPv4 address (4 bytes) or an IPv6 address (16), in network order. */
void torch_peer_name(struct torch_peer *peer, const uint8_t *bytes, size_t length);
