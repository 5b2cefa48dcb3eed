/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* Decodes `text`, in which line ends, spaces and tabs do not count, into `out`, which has room for
 * length / 4 * 3 + 3 bytes. Returns how many were written; -1: not base64. Pure. */
ssize_t base64_decode(const char *text, size_t length, unsigned char *out);
