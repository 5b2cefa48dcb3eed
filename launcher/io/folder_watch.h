/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notices by inotify which files of one folder have been written or renamed. Like io/watch, it is a
 * hint: without an inotify instance to spare, or if the kernel's queue overflows, it says that any
 * file may have changed.
 */
#pragma once

#include <stdbool.h>

#include "io/loop.h"

struct folder_watch;

/* `changed` gets the name of a file, borrowed; NULL: any may have changed. `ready` comes from the
 * loop when there is something to read with folder_watch_read(). NULL: there is no inotify. */
struct folder_watch *folder_watch_create(struct loop *loop, const char *folder,
                                         void (*changed)(void *context, const char *name),
                                         void (*ready)(void *context), void *context);
void folder_watch_destroy(struct folder_watch *watch); /* accepts NULL */

/* While it is off, the kernel collects the changes and `ready` does not come. It begins off. */
void folder_watch_listen(struct folder_watch *watch, bool on);

/* Calls `changed` for each change so far. Never waits. */
void folder_watch_read(struct folder_watch *watch);
