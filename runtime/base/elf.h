/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads what an ELF file says about its loading: needed libraries, search paths, interpreter; and
 * its build id. It is pure: the caller gives a function that reads bytes. A few small reads are
 * enough for any file.
 *
 * It reads both classes and both byte orders. Headers, entries and names have size limits. With
 * invalid input, elf_read() returns -1 or leaves out what it cannot read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strv.h"

/* `read` reads up to `length` bytes at `offset` into `out` and returns their number. 0: the end, or
 * a failure. */
struct elf_source {
    size_t (*read)(void *context, uint64_t offset, void *out, size_t length);
    void *context;
    bool versions; /* also find the versions; that is many small reads */
    bool notes;    /* also find the build id */
};

struct elf_info {
    bool wide, big_endian; /* ELFCLASS64, ELFDATA2MSB */
    uint16_t type, machine;
    bool dynamic;         /* has a dynamic section */
    char *interpreter;    /* PT_INTERP; NULL: none */
    struct strv needed;   /* DT_NEEDED in their order */
    struct strv versions; /* that it needs of them, such as "GLIBC_2.34": DT_VERNEED */
    char *rpath, *runpath;
    char *build_id; /* hexadecimal; NULL: none, or not asked for */
};

/* Fills `out`, which the caller destroys. -1: not an ELF file, or a broken one; `out` is empty. */
int elf_read(const struct elf_source *source, struct elf_info *out);
/* Reads from memory, versions too. */
int elf_parse(const void *bytes, size_t length, struct elf_info *out);
void elf_info_destroy(struct elf_info *info);
