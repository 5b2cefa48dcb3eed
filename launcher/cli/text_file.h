/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a text file that the user names. It may be a pipe, as the shell makes for `<(command)`, but
 * not one that never ends. Reading stops at the first NUL byte, so a file that is not text (a disk
 * image, /dev/zero) is not read to its end.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

/* Appends to `out`, whose limit bounds the size. -1: the status is STATUS_USAGE, and the text names
 * the path. */
int text_file_read(const char *path, int64_t limit_ms, struct buf *out, struct error *err);
