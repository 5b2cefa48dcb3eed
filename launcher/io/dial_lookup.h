/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of a "HOST:PORT". A child process looks the name up, so that a resolver that does
 * not answer cannot keep the agent beyond its time limit. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strv.h"

#define DIAL_LOOKUP_MAX 32 /* addresses */

/* "name:4000", "10.0.0.1:4000" or "[fd00::1]:4000". */
bool dial_lookup_is_server(const char *server);

/* Fills `out` with numeric addresses such as "10.0.0.1:4000" and "[fd00::1]:4000". Blocks for
 * `limit_ms` at most. -1: the name has none, or no resolver answers. */
int dial_lookup(const char *server, int64_t limit_ms, struct strv *out, struct error *err);
