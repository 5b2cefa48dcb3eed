/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ways to a server other than TCP: a ProxyCommand, or the ssh program through jump hosts. A helper
 * process carries the connection over a socketpair; its stderr explains its failures.
 */
#pragma once

#include <stdbool.h>

#include "base/strv.h"
#include "io/helpers.h"
#include "io/loop.h"
#include "transport/ssh/config.h"

/* The argv for the host of `config`, which has a proxy_jump or a proxy_command; the caller destroys
 * it. `config_file`: ssh -F; NULL. Pure. -1: it cannot be used. */
int ssh_proxy_argv(const struct ssh_config *config, const char *asked_name, const char *config_file,
                   struct strv *argv, struct error *err);

struct ssh_proxy;

struct ssh_proxy *ssh_proxy_start(struct loop *loop, struct helpers *helpers, char *const *argv,
                                  struct error *err);
void ssh_proxy_destroy(struct ssh_proxy *proxy); /* closes the descriptor; accepts NULL */

int ssh_proxy_fd(const struct ssh_proxy *proxy);          /* non-blocking; stays the proxy's */
const char *ssh_proxy_last_line(struct ssh_proxy *proxy); /* of its stderr; ""; borrowed */
/* Its stderr is that of an ssh that a server has cut off, or empty. */
bool ssh_proxy_was_cut(struct ssh_proxy *proxy);
