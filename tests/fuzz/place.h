/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of a target: a folder of this process that is gone at its end, and what fd_read_file()
 * reads, which is how the launcher reads the small files of the kernel (/proc, /sys, cgroups).
 */
#pragma once

#include "fuzz.h"

/* The path of `name` in the folder, with the folders above it made. The caller's. */
char *place_path(const char *name);
void place_write(const char *name, const void *bytes, size_t size);
void place_link(const char *name, const char *to); /* both in the folder */

/* From now on, and until it is called with NULL, each file that fd_read_file() is asked for holds
 * the next section of these bytes: one ends at PLACE_NEXT, one that begins with PLACE_MISSING is
 * not there, nor is any behind the last. Whoever links this needs -Wl,--wrap=fd_read_file. */
#define PLACE_NEXT 0x1e
#define PLACE_MISSING '!'
void place_feed(struct fuzz_bytes *bytes);
