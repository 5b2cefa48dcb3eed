/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The facts of stat(2) that change when the content of a file changes, so that a program need not
 * read the file again. If the clock of the file system is coarse, this misses some changes. These
 * are changes in place that keep the size and come within one tick after the file was read.
 */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

struct file_stamp {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec modified, changed;
};

/* If the file does not exist, the stamp is all zero. */
struct file_stamp file_stamp_of(const char *path);
struct file_stamp file_stamp_of_stat(const struct stat *status);
bool file_stamp_equal(const struct file_stamp *a, const struct file_stamp *b);
