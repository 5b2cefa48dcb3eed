/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The known_hosts files of a job. Each is read when the first host is looked up in it. It is read
 * again only when stat(2) shows that it was written to, as we do ourselves for a new host.
 */
#pragma once

#include "base/error.h"
#include "transport/ssh_module/known_hosts.h"
#include "transport/ssh_module/ssh_module.h"

struct ssh_known_files *known_files_create(void);
void known_files_destroy(struct ssh_known_files *files); /* accepts NULL */

/* Adds what these files (NULL-ended; NULL: none) say about the host. Those that cannot be read are
 * skipped, as OpenSSH does. -1: one is too large, so that nothing can be said about any host. */
int known_files_find(struct ssh_known_files *files, char *const *paths, struct known_hosts *known,
                     struct error *err);
