/* SPDX-License-Identifier: Apache-2.0 */
/* Pseudo-terminals. openpty(3) makes descriptors that a child of another thread could inherit. */
#pragma once

#include <stdint.h>

/* The master and the slave, close-on-exec; nobody's controlling terminal. `rows` 0: no size. -1 and
 * errno. */
int pty_open(int ends[2], int rows, int columns);

/* The same for output alone: the slave can only be written, and every byte passes unchanged. */
int pty_open_output(int ends[2], int rows, int columns);

/* How many more the kernel allows in all, at most; -1: unknown. */
int64_t pty_left(void);
