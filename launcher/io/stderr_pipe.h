/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stderr of a program that we start: our end of a pipe. The loop reads it line by line,
 * until all writers have closed the other end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "io/loop.h"

/*
 * Turns the bytes of another program's stderr into lines that may be shown: without control
 * characters, at most STDERR_LINE_MAX bytes long (the rest of a longer line is dropped), and at
 * most STDERR_LINES_MAX of them. After that only the last line is remembered. Pure.
 */
#define STDERR_LINE_MAX 240
#define STDERR_LINES_MAX 50

struct stderr_lines {
    char line[STDERR_LINE_MAX + 1]; /* unfinished */
    size_t length;
    char last[STDERR_LINE_MAX + 1]; /* the last whole line with something in it; "" */
    int told;
};

/* `tell` may be NULL. An all-zero struct is ready. */
void stderr_lines_feed(struct stderr_lines *lines, const char *bytes, size_t length,
                       void (*tell)(void *context, const char *line), void *context);
void stderr_lines_end(struct stderr_lines *lines, void (*tell)(void *context, const char *line),
                      void *context);

struct stderr_pipe {
    int fd; /* -1: never opened, or at its end */
    struct loop_fd *watch;
    struct stderr_lines lines;
    void (*line)(void *context, const char *line); /* NULL */
    void (*ended)(void *context);                  /* the pipe is closed; NULL */
    void *context;
};

#define STDERR_PIPE_INIT ((struct stderr_pipe){.fd = -1})

/* Makes the pipe, and reads it from now on. Returns the end of the program, which the caller
 * closes, or -1 with errno. `ended` may destroy what holds the pipe. */
int stderr_pipe_open(struct stderr_pipe *pipe, struct loop *loop,
                     void (*line)(void *context, const char *line), void (*ended)(void *context),
                     void *context);

/* Reads what is there now, before the loop does it. */
void stderr_pipe_read(struct stderr_pipe *pipe);

/* Stops reading; the lines stay. */
void stderr_pipe_close(struct stderr_pipe *pipe);
