/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of a job: one set for each distinct list of files and agent, loaded once for all hosts.
 * Encrypted keys are left out, unless the user's ssh-agent has them: the user is never asked.
 */
#pragma once

#include "transport/ssh/config.h"
#include "transport/ssh_module/ssh_module.h"

struct ssh_identities;

/* All is borrowed. */
struct ssh_identities *ssh_identities_create(const struct ssh_module *module);
void ssh_identities_destroy(struct ssh_identities *identities); /* after the sessions */

struct ssh_identity {
    struct ssh_keys *keys; /* NULL: `why` says why */
    const char *why;
    const struct strv *notes; /* for the first call that asks for this set; else NULL */
};

/* The keys for a host with this configuration. They live as long as the identities. Reads the files
 * and asks the agent when the set is new. */
struct ssh_identity ssh_identities_find(struct ssh_identities *identities,
                                        const struct ssh_config *config);
