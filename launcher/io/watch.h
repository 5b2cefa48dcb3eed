/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notices changes to a file by inotify: a write in place, a rename over it, its removal and return,
 * or a switched symbolic link on the way to it, as Kubernetes does with a ConfigMap. It watches the
 * file, its folder, and the folder of each link on the way.
 *
 * This is a hint, not a promise. The kernel does not notice changes on NFS, or in a folder that
 * does not exist yet or was replaced as a whole. A user can also run out of inotify instances. So
 * the owner also looks now and then, and calls watch_refresh() when the way to the file may have
 * changed.
 */
#pragma once

#include <stdbool.h>

#include "io/loop.h"

struct watch;

/* `changed(context, whole)`: `whole` is false while somebody may be in the middle of writing the
 * file; it is called again when the file is closed. It may destroy the watch. Never fails. */
struct watch *watch_create(struct loop *loop, const char *path,
                           void (*changed)(void *context, bool whole), void *context);

/* Finds the way to the file again. Reads from the file system. */
void watch_refresh(struct watch *watch);
void watch_destroy(struct watch *watch); /* accepts NULL */
