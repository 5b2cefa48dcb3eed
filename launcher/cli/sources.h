/* SPDX-License-Identifier: Apache-2.0 */
/* What the command line does not say itself: other sources of options, and files of the user. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/strv.h"
#include "cli/flags.h"
#include "model/settings/line.h"
#include "model/settings/settings.h"

/* config.c: options from elsewhere than the command line: the environment and the configuration
 * files. */

/* Applies the options in `envp`: HVDRUN_TIMEOUT=5m is --timeout 5m. An empty value has no effect.
 * An unknown HVDRUN_ name adds a line to `warnings`. */
int env_options_apply(char *const *envp, struct settings *settings, struct strv *warnings,
                      struct error *err);

/* Reads the user's own file: $XDG_CONFIG_HOME/hvdrun/config.ini or ~/.config/hvdrun/config.ini (INI
 * only). The file need not exist, but it is an error if it exists and is not readable. */
int config_file_user(char *const *envp, struct settings *settings, struct error *err);

/* Reads the file of --config-file: INI or horovodrun's YAML. The end of the name decides, otherwise
 * the content. */
int config_file_named(const char *path, struct settings *settings, struct error *err);

/*
 * config_yaml.c: horovodrun's YAML configuration: one mapping of sections (params, autotune,
 * timeline, stall_check, library_options, logging). Each section maps keys to plain values.
 * `controller` and `verbose` are outside of the sections. A key without a value has no effect.
 */

/* Errors begin with "FILE:LINE: ". */
int config_yaml_read(const char *bytes, size_t length, const char *file, struct settings *settings,
                     struct error *err);

/* launcher_line.c: a line of another launcher in the place of the program: `hvdrun -H a,b torchrun
 * train.py`. */

/* The launcher of features.def by whose name hvdrun was started, through a link. NULL: none. */
const char *launcher_line_name(const char *argv0);

/* Puts the flags and the program of such a line in its place. Without one, it warns of a launcher
 * that hvdrun would start once for each rank. `line` is all zero before, and destroyed by the
 * caller; its warnings and further mistakes are for the user. -1: it is wrong. STATUS_USAGE. */
int launcher_line_take(struct flags *flags, char *const *envp, struct line *line,
                       struct error *err);

/* user_files.c: files that the user names: text that hvdrun reads, and files that it writes during
 * a job. */

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
