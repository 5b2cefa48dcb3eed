/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store of torch.distributed (TCPStore): bytes of clients go in, bytes for clients come out. No
 * descriptor, no clock: torch_server.h has these.
 *
 * It keeps what torch's own servers agree on, and adds limits: of keys and values (torch_query.h),
 * and of all memory. A client that passes one, or sends something else than queries, is to be
 * dropped. GET of a missing key drops a client of A and B, and is an empty value to one of C;
 * torch's clients WAIT first. Time-outs are the clients': any query of a client that waits ends its
 * wait, and only CANCEL_WAIT is answered for it.
 */
#pragma once

#include "base/error.h"
#include "features/torch_store/torch_client.h"

/* `answered`: see torch_client.h. */
struct torch_store *torch_store_create(size_t memory_limit, void (*answered)(void *owner));
void torch_store_destroy(struct torch_store *store); /* all clients have left */

struct torch_client *torch_store_join(struct torch_store *store, void *owner);
void torch_store_leave(struct torch_client *client);

/* These bytes have come. -1: `err` says why the client is to be dropped. A client has a turn of
 * limited work: if it `has_more`, call this again later, with or without bytes, once it has read
 * what is in its queue. */
int torch_client_take(struct torch_client *client, const uint8_t *bytes, size_t length,
                      int64_t now_ms, struct error *err);
void torch_client_sent(struct torch_client *client); /* something of its queue was consumed */

/* A client that waits: in WAIT or BARRIER, or because it asks for a counter again and again, as
 * torch's store barrier does. */
struct torch_waiting {
    void *owner;
    const char *key;         /* the first one that is missing; borrowed until the store changes */
    size_t key_length, keys; /* of that key, and how many are missing */
    int64_t waited_ms;
};
void torch_store_each_waiting(const struct torch_store *store, int64_t now_ms,
                              void (*each)(void *context, const struct torch_waiting *waiting),
                              void *context);
