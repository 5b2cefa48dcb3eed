/* SPDX-License-Identifier: Apache-2.0 */
/* Pseudo-terminals. openpty(3) makes descriptors that a child of another thread could inherit. */
#pragma once

/* The master and the slave, close-on-exec; nobody's controlling terminal. `rows` 0: no size. -1 and
 * errno. */
int pty_open(int ends[2], int rows, int columns);
