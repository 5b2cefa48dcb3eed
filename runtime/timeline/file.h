/* SPDX-License-Identifier: Apache-2.0 */
/* A file that is a whole JSON array after each write. */
#pragma once

#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"

struct timeline_file {
    int fd;    /* -1: closed */
    off_t end; /* where the next object goes: the end of the array overwrites it */
};

/* Creates the file, or replaces an old one. */
int timeline_file_open(struct timeline_file *file, const char *path, struct error *err);

/* Appends the text of objects in front of the end of the array. On failure the file is the array
 * that it was before, as far as the disk allows. */
int timeline_file_append(struct timeline_file *file, const struct buf *objects, struct error *err);

void timeline_file_close(struct timeline_file *file);
