/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stat(2) says of a file that changes when its content does: for those who have read it and
 * need not read it again. Where the clock of a file system is coarse, a change in place that keeps
 * the size and comes within one tick of the reading is missed.
 */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

struct stamp {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec modified, changed;
};

/* Of a file that is not there: all zero. */
struct stamp stamp_of(const char *path);
struct stamp stamp_of_stat(const struct stat *status);
bool stamp_equal(const struct stamp *a, const struct stamp *b);
