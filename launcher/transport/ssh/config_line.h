/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of OpenSSH's configuration files, and of what `ssh -G` prints. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define SSH_CONFIG_LINE_MAX 8192

/* Takes a line off the front of `*text`, without blanks around it; the caller frees it. False:
 * there is none. `*line` is NULL when it is too long, or no text. */
bool ssh_config_line_next(const char **text, size_t *left, char **line);

/* True when the line begins with this keyword; `*value` is what follows it. */
bool ssh_config_line_is(const char *line, const char *keyword, const char **value);
