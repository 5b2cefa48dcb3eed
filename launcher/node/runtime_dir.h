/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime folder of an agent: ${TMPDIR:-/tmp}/hvdrun-UID/PID.N, 0700, locked while its owner
 * runs, removed at the end. The next start sweeps folders whose owner ended without removing them.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"

#define RUNTIME_DIR_SHARED_MEMORY "/dev/shm"

struct runtime_dir;

/* NULL: `err` says why, with its errnum, which is ENOSPC also when a quota is used up. */
struct runtime_dir *runtime_dir_create(struct error *err);

/* The temporary folder of this process: ${TMPDIR:-/tmp}. Also /tmp if TMPDIR is not an absolute
 * path. Borrowed. */
const char *runtime_dir_tmpdir(void);

/* The folder of all runtime folders of this user, which need not exist; the caller frees it. */
char *runtime_dir_base(void);
/* That of a process with this TMPDIR (NULL: it has none). */
char *runtime_dir_base_in(const char *tmpdir);

/* Opens the folder `name` in that folder, and makes both if they are missing. A `name` that begins
 * with a dot is never swept. -1: it cannot be made, or other users have access to it. */
int runtime_dir_open_kept(const char *name, struct error *err);

/* The same below another place than the temporary folder: RUNTIME_DIR_SHARED_MEMORY. */
struct runtime_dir *runtime_dir_create_in(const char *place, struct error *err);
const char *runtime_dir_path(const struct runtime_dir *dir);

/* Are `bytes` left where the folder is? -1 with errnum ENOSPC; the text says that `user` ("PMIx")
 * needs them. 0 also when the file system does not say. */
int runtime_dir_room(const struct runtime_dir *dir, uint64_t bytes, const char *user,
                     struct error *err);

void runtime_dir_destroy(struct runtime_dir *dir); /* removes it with all that is in it */

/* Removes the folders that dead agents of this user left behind, in all places where agents keep
 * folders. */
void runtime_dir_sweep(void);

/* Removes the tree below `path`. The parent goes too if it is then empty, and a folder of all jobs
 * of a user: an empty /tmp stays. Never follows symbolic links. */
void runtime_dir_remove(const char *path);
