/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of runtime need, and nobody else: the files that a process has mapped, from the
 * text of /proc/PID/maps. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct mapped_file {
    uint64_t start, end, offset; /* of the mapping with the smallest offset */
    uint64_t inode;
    char *path; /* as in the text: it can end with " (deleted)" */
};

struct mapped_files {
    struct mapped_file *items;
    size_t count;
};

/* The files whose base name begins with "python" or "libpython", and the file at `program`, which
 * comes first; each file once. At most MAPPED_FILES_MAX. */
#define MAPPED_FILES_MAX 16
void mapped_files_read(const char *text, const char *program, struct mapped_files *out);
void mapped_files_destroy(struct mapped_files *files);

/* "python3.10", "libpython3.9.so.1.0": 10, 9; -1: the name does not say. */
int mapped_minor_version(const char *path);
