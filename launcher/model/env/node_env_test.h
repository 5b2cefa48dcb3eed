/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of node_env alone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/strv.h"
#include "model/env/node_env.h"
#include "model/env/table.h"

/* Puts both names into the table. `owned` gets the strings that the table borrows. Either address
 * may be NULL. */
void no_proxy_put(struct no_proxy *out, const char *rendezvous, const char *master,
                  struct env_table *table, struct strv *owned);
