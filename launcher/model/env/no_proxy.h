/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must not go through a proxy: the rendezvous (Python's HTTP client obeys proxies) and the
 * coordinator (so does JAX's gRPC). Their addresses go into no_proxy and NO_PROXY, behind what the
 * user has there. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/strv.h"
#include "model/env/table.h"

struct no_proxy {
    const char *addresses[3]; /* NULL-ended, borrowed */
    size_t slots[2];          /* of no_proxy and NO_PROXY in the table */
    bool has_proxy;           /* without one, both are omitted: JAX warns of them */
};

/* Puts both names into the table. `owned` gets the strings that the table borrows. Either address
 * may be NULL. */
void no_proxy_put(struct no_proxy *out, const char *rendezvous, const char *master,
                  struct env_table *table, struct strv *owned);

/* Changes a worker's variables, which are in the order of the table, for what the user gives with
 * -x (`user` may be NULL). `owned` gets the strings that `items` borrows. */
void no_proxy_user(const struct no_proxy *no_proxy, const struct env_table *table,
                   const struct strv *user, char **items, struct strv *owned);
