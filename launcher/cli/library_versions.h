/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The versions of the libraries that hvdrun's modules link with: those at build time, and those on
 * this machine, which may differ after an upgrade. Loads all of these libraries.
 */
#pragma once

#include "base/buf.h"

/* Appends a table with a line for each library. `module_dir` is the folder of the modules. If a
 * library cannot be loaded, its line has the loader's reason. */
void library_versions_text(const char *module_dir, struct buf *out);

/* Appends the number in a library's own version text: 4.2.2 for "OpenPMIx 4.2.2 (PMIx ...)", and
 * "?" if it has none. */
void library_versions_number(const char *text, struct buf *out);
