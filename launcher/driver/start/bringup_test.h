/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of bringup need, and nobody else. */
#pragma once

/* The problem of a host that did not find `program`. If this machine has the program, the text says
 * so, and that each host needs it. `path` is a PATH value, `wdir` the folder of the workers (NULL:
 * ours). The caller's. */
char *program_here_text(const char *problem, const char *program, const char *path,
                        const char *wdir);
