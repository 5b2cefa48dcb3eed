/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration files that ssh reads, with all that they include: read once for their sections,
 * and again when stat(2) says that one was changed. */
#pragma once

#include <stdbool.h>

#include "transport/ssh/sections.h"

struct ssh_config_files;

/* `config_file`: ssh -F; NULL: the user's in `home` (NULL: none) and the system's. Borrowed. */
struct ssh_config_files *ssh_config_files_create(const char *home, const char *config_file);
void ssh_config_files_destroy(struct ssh_config_files *files); /* accepts NULL */

/* The sections as they are now; borrowed until the next call. `*changed` is set when they are
 * others than those of the call before. */
const struct ssh_sections *ssh_config_files_sections(struct ssh_config_files *files, bool *changed);
