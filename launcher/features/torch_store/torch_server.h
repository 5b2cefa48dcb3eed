/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serves a store (torch_store.h) on a port, in the loop. One server is one attempt of a job: when
 * it is destroyed, its port, its connections and its keys are gone.
 *
 * At most `clients_max` connections are open, and others wait to be accepted. So they do while
 * the process has no free descriptor. A client whose answers pile up is not read. Idle clients stay
 * for ever: torch's are idle for days. Anyone who reaches the port can use the store, as with
 * torch's own server.
 */
#pragma once

#include "base/log.h"
#include "features/torch_store/torch_store.h"
#include "features/torch_store/torch_waits.h"
#include "io/loop.h"

#define TORCH_CLIENTS_MAX 65536

struct torch_server;

/* Listens on all addresses, IPv6 too if there is any. `log` outlives the server, and gets a warning
 * for the first client that is dropped, and for the first lack of descriptors. NULL: it cannot
 * listen there. */
struct torch_server *torch_server_create(struct loop *loop, int port, size_t clients_max,
                                         const struct log *log, struct error *err);
void torch_server_destroy(struct torch_server *server); /* accepts NULL */

/* Clients that wait. */
void torch_server_each_waiting(const struct torch_server *server,
                               void (*each)(void *context, const struct torch_waiting *waiting),
                               void *context);
const struct torch_peer *torch_server_peer(const struct torch_waiting *waiting);
size_t torch_server_clients(const struct torch_server *server);
