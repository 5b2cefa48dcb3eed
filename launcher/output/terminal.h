/* SPDX-License-Identifier: Apache-2.0 */
/* The size and the raw mode of the user's terminal. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Of the terminal behind stdin, stdout or stderr; 0 by 0 when there is none. */
void terminal_size(uint32_t *rows, uint32_t *columns);

/* Raw mode on stdin, for a rank that has a terminal of its own (--pty): every key goes to it. NULL
 * when stdin is not a terminal. Restored by terminal_restore(), which may be followed by
 * terminal_raw_again() (after the job was suspended), and by terminal_destroy(). None of them does
 * anything while we are in the background. */
struct terminal;
struct terminal *terminal_raw(void);
void terminal_restore(struct terminal *terminal);
void terminal_raw_again(struct terminal *terminal);
void terminal_destroy(struct terminal *terminal);

/* May we read from stdin now? Not when it is a terminal and we are in the background. */
bool terminal_may_read(void);
