/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which ranks wait in the store of torch.distributed, and for which others. The store knows only
 * connections; the sockets of a rank say which of them are its own. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Connections to a store, in the text of /proc/net/tcp or tcp6. */

struct torch_peer { /* numeric, without a "::ffff:" in front of IPv4 */
    char address[48];
    int port;
};

struct torch_socket {
    uint64_t inode;
    struct torch_peer local;
};

struct torch_sockets {          /* all zero: none */
    struct torch_socket *items; /* the caller frees them */
    size_t count, room;
};

/* Adds the sockets that are connected to `store`. What cannot be read is left out. */
void torch_sockets_add(struct torch_sockets *sockets, const char *text,
                       const struct torch_peer *store);
const struct torch_socket *torch_sockets_find(const struct torch_sockets *sockets, uint64_t inode);

/* The text of an IPv4 address (4 bytes) or an IPv6 address (16), in network order. */
void torch_peer_name(struct torch_peer *peer, const uint8_t *bytes, size_t length);

/* Ranks */

#define TORCH_WAITS_MS 10000 /* shorter waits are usual */

struct torch_rank {
    int rank;
    const char *host;
    bool known;       /* its agent has looked */
    bool connected;   /* it has a connection to the store */
    const char *key;  /* for which it waits; NULL: it does not */
    size_t more_keys; /* that are missing, too */
    int64_t waited_ms;
};

/* Appends "ranks 0-2 wait for 12 s in PyTorch's store for '/key'; rank 3 on c is not connected to
 * it". `strangers`: clients that wait and are not known to be a rank. Nothing if nobody has waited
 * for TORCH_WAITS_MS; the key is the one for which most ranks wait. */
void torch_waits_text(const struct torch_rank *ranks, size_t count, size_t strangers,
                      struct buf *out);
