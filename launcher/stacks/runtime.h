/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the interpreter in a process: the address of _PyRuntime, and the version. It looks in the
 * program, and in libraries and programs whose names begin with "libpython" and "python". The files
 * can be in a container, or deleted: it opens them through /proc. The symbols of these files lead
 * to the interpreter, and others to glibc's stdout.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/elf.h"
#include "stacks/memory.h"

/* What it has read of ELF files, for other processes of the same program. Not for several threads.
 */
struct runtime_files;

struct runtime_files *runtime_files_create(void);
void runtime_files_destroy(struct runtime_files *files); /* accepts NULL */

struct runtime {
    uint64_t address; /* of _PyRuntime */
    int minor;        /* of Python 3; -1: unknown */
};

/* 1: found. 0: that process is not Python, or has ended. */
int runtime_find(struct runtime_files *files, pid_t pid, struct memory *memory,
                 struct runtime *out);

/*
 * Where an ELF file has the two objects that lead to a Python interpreter: _PyRuntime, and
 * Py_Version (3.11 and later). And where glibc has the object behind stdout. Pure: the caller gives
 * a function that reads bytes of the file.
 *
 * It looks in .dynsym, which stripped files have too, then in .symtab. Without these, the section
 * .PyRuntime (3.10 and later) begins with _PyRuntime. It reads 64-bit little-endian files only, and
 * needs their section headers.
 */
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
int symbols_read_file(int fd, struct symbols *out);

/* What to add to an address of the file when its bytes from `offset` on are mapped at `mapped`. -1:
 * no segment has that offset. */
int symbols_bias(const struct symbols *symbols, uint64_t offset, uint64_t mapped, uint64_t *bias);
