/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection between two agents: TLS 1.3 with the key of the job's tree.
 *
 *   state        connected    handshake over   limit over, error
 *   CONNECTING   SHAKING                       closed
 *   SHAKING                   open             closed
 *   open                                       closed (an error)
 */
#pragma once

#include "io/link.h"
#include "io/listener.h"
#include "io/tls_module.h"

/* To connect, for the handshake and for the first frame. */
#define TREE_LINK_LIMIT_MS 30000
#define TREE_IDENTITY "hvdrun-tree"

struct tree_tls {
    const struct tls_module *module;
    struct tls_party *party;
};

struct tree_link;

struct tree_link_ops {
    void (*open)(void *context, struct tree_link *link); /* may be NULL */
    void (*frame)(void *context, struct tree_link *link, const struct frame_header *header,
                  const uint8_t *body);
    /* Once; the owner destroys the link, in here or later. */
    void (*closed)(void *context, struct tree_link *link, const char *why);
};

/* Connects. `ops` is called from the loop, never from within this call. `dead_after_ms`: as
 * tcp_options_set(). NULL: `err` says why. */
struct tree_link *tree_link_call(struct loop *loop, const struct socket_address *to,
                                 const struct tree_tls *tls, int64_t dead_after_ms,
                                 const struct tree_link_ops *ops, void *context, struct error *err);
/* The same for one that has called, at this descriptor, which it takes. */
struct tree_link *tree_link_answer(struct loop *loop, int fd, const struct tree_tls *tls,
                                   int64_t dead_after_ms, const struct tree_link_ops *ops,
                                   void *context);
void tree_link_destroy(struct tree_link *link);        /* accepts NULL */
struct link *tree_link_frames(struct tree_link *link); /* NULL: it is not open, or closed */
