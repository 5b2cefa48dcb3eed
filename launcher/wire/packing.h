/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes for many receivers, made smaller (zlib). The peer's bytes are proved as they are read: a
 * result has exactly the size that was announced, or there is none.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* More would take the one thread too long: about 10 ms for each MiB. */
#define PACKING_MAX ((size_t)4 << 20)

/* Appends the bytes to `out`, whose limit must have room for as many, if that takes at most 7/8 of
 * their length. false: it would not, or there are more than PACKING_MAX; `out` is as before. */
bool packing_shrink(const void *bytes, size_t length, struct buf *out);

/* Returns `size` bytes, which the caller frees. NULL: these are not `size` bytes made smaller, or
 * more than `limit`. */
void *packing_expand(const void *bytes, size_t length, size_t size, size_t limit);
