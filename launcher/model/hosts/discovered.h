/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hosts that an elastic job may use now, from the output of a discovery script or from a
 * hostfile. Pure.
 *
 * A script prints one host a line, as for horovodrun: `host` or `host:slots`. The forms of -H work
 * too: `user@host`, ranges, an IPv6 address in brackets. A `#` begins a comment; blank lines and
 * CRLF are fine. Slots do not add up as in -H and hostfiles. A later line about a host replaces an
 * earlier one, and the host keeps its first place. `host:0` is a host that is known but not
 * available; it is omitted. No line at all is an empty list.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "model/hosts/hosts.h"

#define DISCOVERED_BYTES_MAX ((size_t)1 << 20)
#define DISCOVERED_HOSTS_MAX 100000

/* `out` is empty at first, and again after an error (STATUS_USAGE), whose text names the line.
 * A host without a number gets `slots_per_host` slots (0: one) and has no `slots_given`. */
int discovered_parse(const char *bytes, size_t length, int slots_per_host, struct host_list *out,
                     struct error *err);

/* The same for a hostfile (model/hosts/hostfile.h). `slots_per_host` counts each time that a host
 * without any number is named. */
int discovered_parse_file(const char *bytes, size_t length, const char *file, int slots_per_host,
                          struct host_list *out, struct error *err);

/* Do both lists have the same hosts with the same slots and traits? The order does not count. */
bool discovered_same(const struct host_list *a, const struct host_list *b);
