/* SPDX-License-Identifier: Apache-2.0 */
/* --version and --check-build: what this hvdrun is, and what is built into it. */
#pragma once

#include "base/buf.h"

/* `module_dir`: where its modules are; all of them are loaded. */
void version_text(const char *module_dir, struct buf *out);
void check_build_text(struct buf *out);
