/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a hostfile from the disk. model/hosts/hostfile.h describes its formats. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "model/hosts/hosts.h"

/* `place` is FILE, or FILE#GROUP for the hosts of one group (unless there is a file with that whole
 * name). `option` named it, for the error of a file that cannot be read. Appends to `hosts`. A pipe
 * must end within `limit_ms`. -1: the status is STATUS_USAGE. */
int hostfile_read(const char *place, const char *option, int64_t limit_ms, struct host_list *hosts,
                  struct error *err);
