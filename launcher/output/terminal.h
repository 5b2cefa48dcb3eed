/* SPDX-License-Identifier: Apache-2.0 */
/* The user's terminal: its size and raw mode, and what the launcher prints there. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct output_config;
struct output_target;
struct sink;
struct surface;

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

/*
 * The launcher's own stdout and stderr: which of them is a terminal, whether both lead to the same
 * place, whether labels are coloured. It looks at the descriptors once and writes only to the sink.
 */

struct console {
    struct sink *sink;
    struct output_target *target[2];
    struct surface *surface[2]; /* equal when both streams lead to the same place */
    int fd[2];
    bool color[2];
};

struct console *console_create(struct sink *sink, const struct output_config *config);
void console_destroy(struct console *console);
