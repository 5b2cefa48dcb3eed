/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The known_hosts files of a job. Each is read when the first host is looked up in it. It is read
 * again only when stat(2) shows that it was written to, as we do ourselves for a new host.
 *
 * A host is looked up by its name: a job of thousands of hosts does not read as many lines for each
 * of them. Patterns, and hashed names that no host has matched yet, are tried with each host.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "transport/ssh_module/known_hosts.h"
#include "transport/ssh_module/ssh_module.h"

struct ssh_known_files *known_files_create(void);
void known_files_destroy(struct ssh_known_files *files); /* accepts NULL */

/* Adds what these files (NULL-ended; NULL: none) say about the host. Those that cannot be read are
 * skipped, as OpenSSH does. -1: one is too large, so that nothing can be said about any host. */
int known_files_find(struct ssh_known_files *files, char *const *paths, struct known_hosts *known,
                     struct error *err);

/* Appends a line for the host and its key to the file, with one write, so that the other lines and
 * other writers are safe. Creates the file, and a folder for it. `hash_name`: as HashKnownHosts. */
int known_files_append(struct ssh_known_files *files, const char *path,
                       const struct known_hosts *known, struct byte_view key, bool hash_name,
                       struct error *err);
