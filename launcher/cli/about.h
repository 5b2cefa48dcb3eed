/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of --version and --check-build: the version, and what the build contains. */
#pragma once

#include "base/buf.h"

/* `module_dir`: the folder of the modules. version_text() loads all of them. */
void version_text(const char *module_dir, struct buf *out);
void check_build_text(struct buf *out);
