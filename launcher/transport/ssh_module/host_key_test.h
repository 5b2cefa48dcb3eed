/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of host_key alone. */
#pragma once

#include "base/error.h"
#include "transport/ssh_module/host_key.h"
#include "transport/ssh_module/known_hosts.h"

/* Appends a line for the host and this key. The file is made with mode 0600 when it is missing, its
 * folder with 0700; a last line without an end is ended first. */
int known_hosts_file_append(const struct known_hosts *known, const char *file, struct byte_view key,
                            bool hash_name, struct error *err);
