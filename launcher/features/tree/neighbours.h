/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agents next to one agent in the tree: the parent, to which it connects, and the children, for
 * which it waits. TLS proves that both have the key. A child says its place in its first frame. It
 * has joined when the other has answered with a large frame: some networks carry only small
 * packets. After that, only the parent sends. A neighbour that sends anything but what belongs
 * there is dropped.
 */
#pragma once

#include "features/tree/routes.h"
#include "features/tree/tree_link.h"

struct tree_neighbours;

struct tree_neighbours_ops {
    void (*joined)(void *context); /* the parent passes on */
    /* It was joined, or was to be, and cannot be any more. Once for each neighbours_join(). */
    void (*left)(void *context, const char *why);
    /* TREE_DOWN of the parent. -1: it is to be dropped. The body is borrowed. It may not end the
     * neighbours. */
    int (*down)(void *context, const uint8_t *body, size_t length);
};

/* `key` has TLS_KEY_SIZE bytes and is copied. */
struct tree_neighbours *neighbours_create(struct loop *loop, const struct tree_shape *shape,
                                          int place, const uint8_t *key, int64_t dead_after_ms,
                                          const struct tree_neighbours_ops *ops, void *context);
void neighbours_destroy(struct tree_neighbours *neighbours); /* accepts NULL */

/* The TLS module, which both of the next need. */
int neighbours_use_tls(struct tree_neighbours *neighbours, const char *module_path,
                       struct error *err);

/* Waits for children. */
int neighbours_wait(struct tree_neighbours *neighbours, const char *address, uint32_t *port,
                    struct error *err);

int neighbours_join(struct tree_neighbours *neighbours, const struct socket_address *parent,
                    struct error *err);
void neighbours_leave(struct tree_neighbours *neighbours); /* the parent, without left() */

struct link *neighbours_child(const struct tree_neighbours *neighbours, int place); /* NULL: none */
void neighbours_drop(struct tree_neighbours *neighbours, int place); /* a child, if it is there */
