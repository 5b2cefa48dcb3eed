/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a text file that the user has named. It may be a pipe, as the shell makes one of
 * `<(command)`; one that never ends is given up. Reading stops at the first NUL byte, so that what
 * is no text (a disk image, /dev/zero) is not read to its end.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

/* Appends to `out`, whose limit bounds it. -1 and STATUS_USAGE; the text begins with the path or
 * names it. */
int text_file_read(const char *path, int64_t limit_ms, struct buf *out, struct error *err);
