/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a hostfile. Pure. docs/hosts.md describes the dialects. The content shows which one a
 * file uses: sections ([defaults], [host NAME], [group NAME]) or a host on each line.
 *
 * All errors have STATUS_USAGE and begin with the file, mostly with file and line. After an error
 * the list may hold hosts of earlier lines; the caller destroys it as usual.
 */
#pragma once

#include "base/error.h"
#include "model/hosts/hostfile_ini.h"
#include "model/hosts/hosts.h"
#include <stddef.h>

#define HOSTFILE_LINE_MAX ((size_t)1 << 20)

/* Appends to `out`. A file that names no host is an error. */
int hostfile_parse(const struct hostfile *file, struct host_list *out, struct error *err);
