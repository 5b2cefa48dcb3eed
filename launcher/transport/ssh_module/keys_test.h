/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of keys alone. */
#pragma once

#include "base/error.h"
#include "transport/ssh_module/key.h"

struct key_agent;
struct key_agent *key_agent_create(const char *socket_path, struct error *err); /* connects */
void key_agent_destroy(struct key_agent *agent);                                /* accepts NULL */

/* Calls `each` once per key, in the agent's order. The blob and the comment are borrowed. */
int key_agent_list(struct key_agent *agent,
                   void (*each)(void *context, struct byte_view blob, const char *comment),
                   void *context, struct error *err);

/* Appends the bare signature over `data`; RSA with SHA-512. */
int key_agent_sign(struct key_agent *agent, const struct key *key, struct byte_view data,
                   struct buf *signature, struct error *err);
