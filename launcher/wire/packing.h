/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What many receivers get, made smaller: bytes and lists. Bytes are packed by zlib. The peer's
 * bytes are proved as they are read: a result has exactly the size that was announced, or there is
 * none.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/strv.h"

/* More would take the one thread too long: about 10 ms for each MiB. */
#define PACKING_MAX ((size_t)4 << 20)

/* Appends the bytes to `out`, whose limit must have room for as many, if that takes at most 7/8 of
 * their length. false: it would not, or there are more than PACKING_MAX; `out` is as before. */
bool packing_shrink(const void *bytes, size_t length, struct buf *out);

/* Returns `size` bytes, which the caller frees. NULL: these are not `size` bytes made smaller, or
 * more than `limit`. */
void *packing_expand(const void *bytes, size_t length, size_t size, size_t limit);

/*
 * Regular lists, short. The names and addresses of thousands of hosts are most of PREPARE. Each
 * host gets all of them, so the bytes of a start would grow with the square of that number.
 *
 * A text of a packed list is one entry, or stands for COUNT of them. "TEXT\tCOUNT" says that all
 * are equal. "FIRST\tCOUNT\tTAIL" says that they count up from FIRST. The number that counts ends
 * TAIL bytes before the end of the text, and keeps its width while it can: n08, n09, n10.
 *
 * No entry has a tab. Packed numbers are pairs: a number, and how many entries in a row have it.
 */

/* Appends `texts` to `out`, packed. */
void text_runs_pack(char *const *texts, size_t count, struct strv *out);
/* `pairs` has room for 2 * count numbers. Returns how many it got. */
size_t number_runs_pack(const uint32_t *numbers, size_t count, uint32_t *pairs);

/* These replace what came from the wire, which is from malloc, by its entries, which are too.
 * -1: it is not packed as above, or has more than `max` entries; it is unchanged then. */
int text_runs_expand(char ***texts, size_t *count, size_t max);
int number_runs_expand(uint32_t **numbers, size_t *count, size_t max);
