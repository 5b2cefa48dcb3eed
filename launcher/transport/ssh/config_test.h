/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of config alone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "transport/ssh/config.h"

#define SSH_CONFIG_LINE_MAX 8192

/* Takes a line off the front of `*text`, without blanks around it; the caller frees it. False:
 * there is none. `*line` is NULL when it is too long, or no text. */
bool ssh_config_line_next(const char **text, size_t *left, char **line);
