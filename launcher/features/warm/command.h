/* SPDX-License-Identifier: Apache-2.0 */
/* Which command lines of Python can be warm. Pure. */
#pragma once

#include "model/settings/python_line.h"

/* NULL; or why a rank with this program (resolved) and arguments cannot be forked. */
const char *warm_command_read(const char *path, char *const *argv, struct python_line *out);
