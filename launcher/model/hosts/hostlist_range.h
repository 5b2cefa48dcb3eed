/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges in host names: `node[01-16]`, `n[1-3,7]x`, `rack[1-2]node[1-8]`. Pure.
 *
 * A set in brackets is a list of numbers and rising ranges. A number that is written with leading
 * zeros sets the width of its range: [08-10] is 08, 09, 10. Several sets in one name count like an
 * odometer, the last one fastest.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"

/* Calls each(context, name, err) for every name that the `length` bytes of `text` stand for, in
 * order; a text without brackets is one name. `budget` is the number of names that sets may still
 * make; it is shared by the calls of one parse and counts down. Returns -1 with STATUS_USAGE for a
 * malformed set, a name above 255 bytes or an exhausted budget, and whatever `each` failed with.
 * Whether a name is fit to be a host's is for `each` to say. */
int hostlist_expand(const char *text, size_t length, size_t *budget,
                    int (*each)(void *context, const char *name, struct error *err), void *context,
                    struct error *err);
