/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a hostfile from the disk (model/hosts/hostfile.h says what may stand in it). */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "model/hosts/hosts.h"

/* `place` is FILE, or FILE#GROUP for the hosts of one group (unless a file is called so). Appends
 * to `hosts`. -1 and STATUS_USAGE. A pipe has `limit_ms` to come to its end. */
int hostfile_read(const char *place, int64_t limit_ms, struct host_list *hosts, struct error *err);
