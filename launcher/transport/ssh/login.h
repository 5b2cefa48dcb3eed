/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a connected socket to a session whose command runs. It drives the module's session on the
 * loop, with a deadline for each of its states, and keeps the session until it is destroyed.
 */
#pragma once

#include "io/loop.h"
#include "transport/ssh_module/ssh_module.h"
#include "transport/transport.h"

struct ssh_login;

struct ssh_login_events {
    void (*state)(void *context, enum ssh_state state); /* a new one, not a final one */
    /* Once: SSH_STATE_OPEN, or a final one with one line that says why. The login may be
     * destroyed in here. */
    void (*done)(void *context, enum ssh_state state, const char *why);
};

/* `config` and what it points to are borrowed until destroy. */
struct ssh_login *ssh_login_start(struct loop *loop, const struct ssh_module *module,
                                  const struct ssh_host_config *config, int64_t limit_ms,
                                  const struct ssh_login_events *events, void *context);
void ssh_login_destroy(struct ssh_login *login); /* accepts NULL */

struct ssh_session *ssh_login_session(const struct ssh_login *login);

/* What a call is at, for its user. */
enum transport_stage ssh_login_stage(enum ssh_state state);
