/* SPDX-License-Identifier: Apache-2.0 */
/* Files that the user names: text that hvdrun reads, and files that it writes during a job. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "model/settings/settings.h"

/* Appends a text file to `out`, whose limit bounds the size. It may be a pipe, as the shell makes
 * for `<(command)`, but not one that never ends. Reading stops at the first NUL byte, so a file
 * that is not text (a disk image, /dev/zero) is not read to its end. -1: the status is
 * STATUS_USAGE, and the text names the path. */
int text_file_read(const char *path, int64_t limit_ms, struct buf *out, struct error *err);

/*
 * Looks at the files to write before anything starts: those of the options with FLAG_WRITES, and
 * the folder of --output-filename.
 *
 * Only the folders of --output-filename and --log-dir are made with all their folders. The folder
 * of a single file must exist, because a path that does not exist is most often a typing error.
 * What a file holds stays as it is until the job writes to it, and a file that does not exist yet
 * does not appear.
 *
 * One job at a time writes to the folder of --output-filename. The folder is locked with flock(2),
 * and the kernel unlocks it when the process ends, however it ends. Some file systems cannot lock a
 * folder (NFS), and a pattern has no folder of its own. Then two jobs are not noticed.
 *
 * -1 and STATUS_USAGE: some cannot be written, or another job writes there; the text names them
 * all. `has_workers`: the job needs the folder of --output-filename. `*lock_fd` locks it until the
 * caller closes it; -1: nothing is locked. */
int job_files_open(const struct settings *settings, bool has_workers, int *lock_fd,
                   struct error *err);
