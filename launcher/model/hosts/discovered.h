/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hosts that an elastic job may use now: what a discovery script prints, or a hostfile holds;
 * bytes in, a host list (model/hosts/hosts.h) out. Pure.
 *
 * A script prints one host a line as horovodrun has it, `host` or `host:slots`, besides what -H
 * knows: `user@host`, ranges, an IPv6 address in brackets. A `#` begins a comment; blank lines and
 * CRLF are fine. Unlike -H and hostfiles, where slots add up, a later line about a host replaces an
 * earlier one; the host keeps its first place. `host:0` is a host that is known but not available:
 * it is left out. No line at all is an empty list.
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

/* The same for a hostfile that is read again and again; as model/hosts/hostfile.h has it.
 * `slots_per_host` counts each time that a host without any number is named. */
int discovered_parse_file(const char *bytes, size_t length, const char *file, int slots_per_host,
                          struct host_list *out, struct error *err);

/* The same hosts with the same slots, reached the same way; the order does not count. */
bool discovered_same(const struct host_list *a, const struct host_list *b);
