/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs in with the keys of struct ssh_keys, one after the other, as many as servers allow
 * (MaxAuthTries 6). It tries no other method and never asks the user.
 */
#pragma once

#include <libssh2.h>

#include "transport/ssh_module/keys.h"

struct auth; /* of one session */

enum auth_step { AUTH_WAIT, AUTH_DONE, AUTH_REFUSED, AUTH_FALLBACK, AUTH_BROKEN };

/* `no_keys` says why `keys` is NULL, and what to do. All is borrowed until auth_destroy(). */
struct auth *auth_create(LIBSSH2_SESSION *session, const char *user, struct ssh_keys *keys,
                         const char *no_keys);
void auth_destroy(struct auth *auth); /* after the session; accepts NULL */

/* AUTH_REFUSED, AUTH_FALLBACK: `text` says why. AUTH_DONE: `text` names the key. AUTH_BROKEN: the
 * connection ended; `text` tells more when there is more to tell than that. */
enum auth_step auth_advance(struct auth *auth, struct buf *text);
