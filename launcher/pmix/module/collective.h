/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A collective operation: fence and connect, which are here, and group. PMIx calls us when all
 * local participants have entered it. On one node these are all of them. Over several nodes the
 * agent sends the bytes to the others and brings back the bytes of all.
 *
 * Operations of one kind with the same participants differ by their order. The order is the same on
 * all nodes, because every participant has the same.
 */
#pragma once

#include <pmix_server.h>

#include "pmix/module/bridge.h"

struct collective {
    struct request base;
    char *operation; /* owned */
    pmix_proc_t *procs;
    size_t count;
    char *bytes; /* of this node's ranks; owned; NULL: none */
    size_t length;
    /* Called once, on the loop's thread. Takes `bytes` (NULL with length 0), which are of all
     * nodes. After collective_clear(), it frees the struct that this is the first member of.
     * `round` is the same on all nodes, and of this operation alone. */
    void (*finish)(struct collective *collective, pmix_status_t status, uint64_t round, char *bytes,
                   size_t length);
};

/* The texts and arrays are copied. */
void collective_init(struct collective *collective, const char *operation, const pmix_proc_t *procs,
                     size_t count, const char *bytes, size_t length);
void collective_clear(struct collective *collective);

void collective_push(struct server *server, struct collective *collective);  /* PMIx's thread */
void collective_begin(struct server *server, struct collective *collective); /* the loop's */
