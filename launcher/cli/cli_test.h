/* SPDX-License-Identifier: Apache-2.0 */
/* What only the tests of config.c and help.c use. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "model/settings/settings.h"

/* `text` is the whole file, without NUL bytes. Errors begin with "FILE:LINE: ". */
int config_ini_read(const char *text, const char *file, enum setting_source source,
                    struct settings *settings, struct error *err);

/* Appends a list of libraries, "zlib 1.3, inih undefined", without versions that are not numbers.
 */
void version_contained(const char *list, struct buf *out);

/* Appends the number in a library's own version text: 4.2.2 for "OpenPMIx 4.2.2 (PMIx ...)", and
 * "?" if it has none. */
void library_versions_number(const char *text, struct buf *out);
