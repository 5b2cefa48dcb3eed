/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an ELF file says about how it is loaded: needed libraries, search paths, interpreter. Pure:
 * bytes come from a function, so that a few small reads are enough for a file of any size.
 *
 * Both classes and both byte orders. Everything is bounded (headers, entries, lengths of names);
 * rubbish makes elf_read() return -1 or leaves out what cannot be read, and never more.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strv.h"

/* Reads up to `length` bytes at `offset` into `out`; returns how many it got, 0 at the end or on
 * failure. */
struct elf_source {
    size_t (*read)(void *context, uint64_t offset, void *out, size_t length);
    void *context;
};

struct elf_info {
    bool wide, big_endian; /* ELFCLASS64, ELFDATA2MSB */
    uint16_t type, machine;
    bool dynamic;       /* has a dynamic section */
    char *interpreter;  /* PT_INTERP; NULL: none */
    struct strv needed; /* DT_NEEDED in their order */
    char *rpath, *runpath;
};

/* Fills `out`, which the caller destroys. -1: not an ELF file (or a broken one); `out` is empty. */
int elf_read(const struct elf_source *source, struct elf_info *out);
int elf_parse(const void *bytes, size_t length, struct elf_info *out); /* the same from memory */
void elf_info_destroy(struct elf_info *info);
