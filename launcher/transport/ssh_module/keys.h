/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys to log in with, in OpenSSH's order: first those that the agent has and a file names,
 * then the agent's others (unless only named ones may be used), then those of the files. They are
 * loaded once and serve all sessions.
 */
#pragma once

#include "transport/ssh_module/key.h"
#include "transport/ssh_module/ssh_module.h"

/* As ssh_module's keys_create and keys_destroy. */
struct ssh_keys *keys_create(const struct ssh_keys_config *config, struct strv *notes,
                             struct error *err);
void keys_destroy(struct ssh_keys *keys);

size_t keys_count(const struct ssh_keys *keys);
const struct key *keys_get(const struct ssh_keys *keys, size_t index);

/* Appends the bare signature by that key. */
int keys_sign(struct ssh_keys *keys, const struct key *key, struct byte_view data,
              struct buf *signature, struct error *err);

/* What only the ssh program could still log in with ("a certificate, FILE-cert.pub"); NULL:
 * nothing. Borrowed. */
const char *keys_left_to_ssh(const struct ssh_keys *keys);
