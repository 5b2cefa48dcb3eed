/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the SSH module: only a job that reaches a host by ssh needs libssh2 at all (D12). */
#pragma once

#include "transport/ssh_module/ssh_module.h"

/* NULL: `err` says why (libssh2 is not installed, or the module is of another version). Never
 * closed again. */
const struct ssh_module *ssh_library_open(const char *path, struct error *err);
