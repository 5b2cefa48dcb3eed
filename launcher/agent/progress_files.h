/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files in which the workers of one crew say how far they are (model/progress). Each worker has
 * one, `progress.SEAT` in the runtime folder, whose path is in its HVDRUN_PROGRESS_FILE.
 *
 * A timer looks whether the folder or one of the files has changed. While no worker has written its
 * file, that is one stat(2) in a second for all of them. inotify would not be cheaper: to close a
 * watch, the kernel waits for milliseconds, and a short job would end so much later.
 *
 * Only the end of a file is read, never from anything but a regular file. A line without its
 * newline may still be incomplete: it counts when it is there at the next look, too.
 */
#pragma once

#include "agent/progress_desk.h"

struct progress_files;

/* `seats` (copied) are those of the crew. What the files say goes to the desk. */
struct progress_files *progress_files_create(struct loop *loop, struct progress_desk *desk,
                                             const char *folder, uint32_t epoch,
                                             const uint32_t *seats, size_t count);
void progress_files_destroy(struct progress_files *files); /* accepts NULL */

char *progress_files_path(const char *folder, uint32_t seat); /* the caller frees it */

/* The worker has ended: what it wrote last is taken now. */
void progress_files_ended(struct progress_files *files, uint32_t seat);
