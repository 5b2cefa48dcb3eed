/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges in host names: `node[01-16]`, `n[1-3,7]x`, `rack[1-2]node[1-8]`. Pure.
 *
 * A set in brackets is a list of numbers and rising ranges. Leading zeros set the width of a range:
 * [08-10] is 08, 09, 10. With several sets in one name the last one counts fastest.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"

/* Calls each(context, name, err) for every name that the `length` bytes of `text` mean, in order. A
 * text without brackets is one name. `budget` is the number of names that sets may still
 * make; it is shared by the calls of one parse and counts down. Returns -1 with STATUS_USAGE for a
 * malformed set, a name above 255 bytes or an exhausted budget, and whatever `each` failed with.
 * `each` checks whether a name is a valid host name. */
int hostlist_expand(const char *text, size_t length, size_t *budget,
                    int (*each)(void *context, const char *name, struct error *err), void *context,
                    struct error *err);
