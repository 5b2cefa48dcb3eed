/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hearing of changes to a file by inotify: written in place, replaced by a rename, removed, made
 * anew, or reached through a symbolic link that is switched over, as Kubernetes does with a
 * ConfigMap. Watched are the file, its folder, and the folder of each link on the way to it.
 *
 * A hint, not a promise: nothing is heard where the kernel hears nothing (NFS, a folder that is
 * not there yet or was replaced as a whole, no inotify left for this user). So the owner also looks
 * by himself now and then, and calls watch_refresh() when the way to the file may be another one.
 */
#pragma once

#include <stdbool.h>

#include "io/loop.h"

struct watch;

/* `changed(context, whole)`: `whole` is false while somebody may be in the middle of writing the
 * file; it is called again when the file is closed. It may destroy the watch. Never fails. */
struct watch *watch_create(struct loop *loop, const char *path,
                           void (*changed)(void *context, bool whole), void *context);

/* Looks anew for the way to the file. Goes to the file system. */
void watch_refresh(struct watch *watch);
void watch_destroy(struct watch *watch); /* accepts NULL */
