/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 as keys and known_hosts files use it, and the fingerprints people compare. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"

/* Decodes `text`, in which line ends, spaces and tabs do not count, into `out`, which has room for
 * length / 4 * 3 + 3 bytes. Returns how many were written; -1: not base64. */
ssize_t base64_decode(const char *text, size_t length, unsigned char *out);
int base64_append(struct buf *out, const void *bytes, size_t length); /* -1: over the limit */

/* "SHA256:..." of a public key blob, as ssh-keygen -l prints it; the caller owns it. */
char *fingerprint_new(const void *blob, size_t length);
