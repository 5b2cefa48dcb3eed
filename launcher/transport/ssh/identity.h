/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of a job: one set for each distinct list of files and agent, loaded once for all hosts.
 * Encrypted keys that only OpenSSH can open go into an ssh-agent of our own when there is a
 * passphrase file, and are left out when there is none: nobody is ever asked.
 */
#pragma once

#include "transport/exec/exec.h"
#include "transport/ssh/config.h"
#include "transport/ssh_module/ssh_module.h"

struct ssh_identities;
struct ssh_identity_request;

/* `passphrase_file` NULL: none. All is borrowed. */
struct ssh_identities *ssh_identities_create(const struct transport_room *room,
                                             const struct ssh_module *module,
                                             const char *passphrase_file);
void ssh_identities_destroy(struct ssh_identities *identities); /* after sessions and requests */

struct ssh_identity_answer {
    struct ssh_keys *keys; /* lives as long as the identities; NULL: `why` says why */
    const char *why;
    const struct strv *notes;  /* for whoever hears it first; else NULL */
    const char *private_agent; /* socket of the agent of our own; NULL: none was needed */
};

/* `done` comes once, from the loop, never from within this call. */
struct ssh_identity_request *
ssh_identity_ask(struct ssh_identities *identities, const struct ssh_config *config,
                 void (*done)(void *context, const struct ssh_identity_answer *answer),
                 void *context);
/* Due for every request, once, also after its answer; accepts NULL. */
void ssh_identity_request_destroy(struct ssh_identity_request *request);
