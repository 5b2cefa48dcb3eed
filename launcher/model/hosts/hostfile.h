/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hostfile's bytes in, hosts out. Pure. docs/hostfiles.md has the dialects; which one a file is
 * written in is seen in it: sections ([defaults], [host NAME], [group NAME]) or a host on each
 * line.
 *
 * All errors have STATUS_USAGE and begin with the file, mostly with file and line; what stood
 * before a bad line may be in the list, which the caller destroys as usual.
 */
#pragma once

#include "base/error.h"
#include "model/hosts/hostfile_text.h"
#include "model/hosts/hosts.h"
#include <stddef.h>

#define HOSTFILE_LINE_MAX ((size_t)1 << 20)

/* Appends to `out`. A file that names no host is an error. */
int hostfile_parse(const struct hostfile *file, struct host_list *out, struct error *err);
