/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of help alone. */
#pragma once

#include "base/buf.h"
#include "cli/help.h"

/* Appends a list of libraries, "zlib 1.3, inih undefined", without versions that are not numbers.
 */
void version_contained(const char *list, struct buf *out);

/* Appends the number in a library's own version text: 4.2.2 for "OpenPMIx 4.2.2 (PMIx ...)", and
 * "?" if it has none. */
void library_versions_number(const char *text, struct buf *out);
