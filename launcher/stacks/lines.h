/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line of an instruction, from the line table of a code object of CPython. Pure.
 *
 * The three formats are those of Objects/lnotab_notes.txt (3.8, 3.9), of PEP 626 (3.10), and of
 * Objects/locations.md (3.11 and later).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* `minor` is that of Python 3. `offset` is in bytes, negative for a frame that has not begun.
 * Returns 0 if the table gives no line. */
int line_of_offset(int minor, const unsigned char *table, size_t length, int first_line,
                   int64_t offset);
