/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file_stamp.h"

struct file_stamp file_stamp_of_stat(const struct stat *status)
{
    return (struct file_stamp){.device = status->st_dev,
                               .inode = status->st_ino,
                               .size = status->st_size,
                               .modified = status->st_mtim,
                               .changed = status->st_ctim};
}

struct file_stamp file_stamp_of(const char *path)
{
    struct stat status;
    if (stat(path, &status) < 0)
        return (struct file_stamp){.size = 0};
    return file_stamp_of_stat(&status);
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool file_stamp_equal(const struct file_stamp *a, const struct file_stamp *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           same_time(&a->modified, &b->modified) && same_time(&a->changed, &b->changed);
}
