/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The libraries that hvdrun's modules load when a job needs them: the versions that it was built
 * with, and those of this machine, which can be others after an upgrade. Loads all of them.
 */
#pragma once

#include "base/buf.h"

/* Appends a table, a line for each; `module_dir` is the folder of the modules. A library that
 * cannot be loaded is told with the loader's reason. */
void library_versions_text(const char *module_dir, struct buf *out);

/* Appends the number in what a library says of itself: 4.2.2 of "OpenPMIx 4.2.2 (PMIx ...)", "?"
 * when there is none. */
void library_versions_number(const char *text, struct buf *out);
