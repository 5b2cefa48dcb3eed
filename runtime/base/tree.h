/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes a folder with all that is below it. It goes by descriptors, follows no link, and stays on
 * one file system: what is mounted below stays, and so do the folders above it. It allocates no
 * memory of its own.
 */
#pragma once

#include <dirent.h>
#include <stdbool.h>

struct tree_pace { /* NULL instead of one: to the end */
    bool (*goes_on)(struct tree_pace *pace);
};

/* Removes what is in the folder `fd_take`, which stays open, and so locked, in the result. Needs no
 * other descriptor unless there are folders in it. NULL: they cannot be read. */
DIR *tree_empty(int fd_take, struct tree_pace *pace);

/* 0: there is no such folder any more. -1 and errno: something remains. */
int tree_remove(int parent, const char *name, struct tree_pace *pace);
