/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code objects of CPython: function, file, and the line of an instruction. Pure.
 *
 * A cache keeps what was decoded. An object counts as the same if its address and its pointers to
 * name, file and line table are. The types of objects are learnt from the first code object: their
 * names must be "code", "str" and "bytes". Anything else is a torn read, or an unknown layout.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "stacks/memory.h"

struct code {
    uint64_t address, name_at, file_at, table_at;
    char *function, *file; /* printable UTF-8 */
    int first_line;
    unsigned char *table;
    size_t table_length;
    uint64_t copies; /* of the instructions, by thread; 0: none */
};

struct code_cache {
    struct code **items;
    size_t count;
    uint64_t code_type, str_type, bytes_type; /* 0: not learnt yet */
};

void code_cache_destroy(struct code_cache *cache);

/* NULL: no code object is there. Belongs to the cache. */
const struct code *code_read(struct code_cache *cache, struct memory *memory,
                             const struct python_layout *layout, uint64_t address);

/* The line of an instruction, from the line table of a code object. The three formats are those of
 * Objects/lnotab_notes.txt (3.8, 3.9), of PEP 626 (3.10), and of Objects/locations.md (3.11 and
 * later).
 *
 * `minor` is that of Python 3. `offset` is in bytes, negative for a frame that has not begun.
 * Returns 0 if the table gives no line. */
int line_of_offset(int minor, const unsigned char *table, size_t length, int first_line,
                   int64_t offset);
