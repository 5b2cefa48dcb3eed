/* SPDX-License-Identifier: Apache-2.0 */
/* Pseudo-terminals. openpty(3) makes descriptors that a child of another thread could inherit. */
#pragma once

#include <stdint.h>

/* The master and the slave, close-on-exec; nobody's controlling terminal. `rows` 0: no size. -1 and
 * errno. */
int pty_open(int ends[2], int rows, int columns);

/* The same for output alone: every byte passes unchanged, and the slave can only be written. Only
 * root can open it once more for reading, and may get a controlling terminal by that. */
int pty_open_output(int ends[2], int rows, int columns);

/* How many more the kernel allows in all, at most: in a container, kernel.pty.reserve of them are
 * for others. -1: unknown. */
int64_t pty_left(void);
