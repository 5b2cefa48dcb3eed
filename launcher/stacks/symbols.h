/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an ELF file has the two objects that lead to a Python interpreter: _PyRuntime, and
 * Py_Version (3.11 and later). And where glibc has the object behind stdout. Pure: the caller gives
 * a function that reads bytes of the file.
 *
 * It looks in .dynsym, which stripped files have too, then in .symtab. Without these, the section
 * .PyRuntime (3.10 and later) begins with _PyRuntime. It reads 64-bit little-endian files only, and
 * needs their section headers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/elf.h"

#define SYMBOLS_SEGMENTS_MAX 16

struct symbols {
    uint64_t runtime, version, standard_output; /* addresses in the file; 0: not there */
    struct {
        uint64_t offset, address, size; /* of what is loaded, in the file's own numbers */
    } segments[SYMBOLS_SEGMENTS_MAX];
    size_t segment_count;
};

/* -1: not a file that it can read; `out` is then empty. */
int symbols_read(const struct elf_source *source, struct symbols *out);

/* What to add to an address of the file when its bytes from `offset` on are mapped at `mapped`. -1:
 * no segment has that offset. */
int symbols_bias(const struct symbols *symbols, uint64_t offset, uint64_t mapped, uint64_t *bias);
