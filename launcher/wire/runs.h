/* SPDX-License-Identifier: Apache-2.0 */
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
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/strv.h"

/* Appends `texts` to `out`, packed. */
void text_runs_pack(char *const *texts, size_t count, struct strv *out);
/* `pairs` has room for 2 * count numbers. Returns how many it got. */
size_t number_runs_pack(const uint32_t *numbers, size_t count, uint32_t *pairs);

/* These replace what came from the wire, which is from malloc, by its entries, which are too.
 * -1: it is not packed as above, or has more than `max` entries; it is unchanged then. */
int text_runs_expand(char ***texts, size_t *count, size_t max);
int number_runs_expand(uint32_t **numbers, size_t *count, size_t max);
