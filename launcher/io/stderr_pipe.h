/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stderr of a program that we start: our end of a pipe. The loop reads it line by line
 * (io/stderr_lines.h), until all writers have closed the other end.
 */
#pragma once

#include "io/loop.h"
#include "io/stderr_lines.h"

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
