/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds a library where the dynamic linker would: run paths, LD_LIBRARY_PATH, the folders of
 * /etc/ld.so.conf, the system's own. This is an approximation: ld.so.cache is not read, since its
 * folders are those of ld.so.conf.
 */
#pragma once

#include <stdbool.h>

#include "base/elf.h"

struct library_search;

/* For the libraries of `program`. `root`: of the image that it runs in (node/image_root.h), or
 * NULL. `program` is its path there. All pointers are borrowed until destroy. */
struct library_search *library_search_create(const char *root, const char *program,
                                             const struct elf_info *info, const char *library_path);
void library_search_destroy(struct library_search *search);

/* Finds the library, of the program's class and machine, and reads it into `out` (destroy it).
 * -1: not found. */
int library_search_open(struct library_search *search, const char *name, struct elf_info *out);

/* errno of a file that could not be read because descriptors or memory ran out, or the disk failed.
 * Then "not found" means nothing. 0: there was none. */
int library_search_trouble(const struct library_search *search);
bool library_is_trouble(int errnum);

/* elf_read() from a descriptor, which stays the caller's. -1 with errno 0: it is not an ELF
 * file. */
int library_read_elf(int fd, struct elf_info *out);
