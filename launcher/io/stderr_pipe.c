/* SPDX-License-Identifier: Apache-2.0 */
#include "io/stderr_pipe.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/fd.h"

/* The lines. */

void stderr_lines_end(struct stderr_lines *lines, void (*tell)(void *context, const char *line),
                      void *context)
{
    while (lines->length > 0 && lines->line[lines->length - 1] == ' ')
        lines->length--;
    lines->line[lines->length] = '\0';
    if (lines->length == 0)
        return;
    memcpy(lines->last, lines->line, lines->length + 1);
    lines->length = 0;
    if (lines->told++ < STDERR_LINES_MAX && tell != NULL)
        tell(context, lines->last);
    else if (lines->told > STDERR_LINES_MAX)
        lines->told = STDERR_LINES_MAX + 1;
}

void stderr_lines_feed(struct stderr_lines *lines, const char *bytes, size_t length,
                       void (*tell)(void *context, const char *line), void *context)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        if (byte == '\n') {
            stderr_lines_end(lines, tell, context);
            continue;
        }
        if (byte == '\t')
            byte = ' ';
        if (byte < 0x20 || byte == 0x7f || lines->length == STDERR_LINE_MAX)
            continue;
        lines->line[lines->length++] = (char)byte;
    }
}

/* The pipe. */

#define CHUNK 4096

void stderr_pipe_read(struct stderr_pipe *pipe)
{
    char bytes[CHUNK];
    ssize_t got = pipe->fd < 0 ? 0 : fd_read(pipe->fd, bytes, sizeof(bytes));
    if (pipe->fd < 0 || (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)))
        return;
    if (got > 0) {
        stderr_lines_feed(&pipe->lines, bytes, (size_t)got, pipe->line, pipe->context);
        return;
    }
    stderr_lines_end(&pipe->lines, pipe->line, pipe->context);
    stderr_pipe_close(pipe);
    if (pipe->ended != NULL)
        pipe->ended(pipe->context);
}

static void ready(void *context, int what)
{
    (void)what;
    stderr_pipe_read(context);
}

int stderr_pipe_open(struct stderr_pipe *pipe, struct loop *loop,
                     void (*line)(void *context, const char *line), void (*ended)(void *context),
                     void *context)
{
    int ends[2] AUTO_FD_PAIR = {-1, -1};
    if (fd_pipe(ends) < 0 || fd_nonblock(ends[0]) < 0)
        return -1;
    *pipe = (struct stderr_pipe){.fd = ends[0], .line = line, .ended = ended, .context = context};
    pipe->watch = loop_fd_create(loop, pipe->fd, ready, pipe);
    loop_fd_watch(pipe->watch, LOOP_READ);
    int of_program = ends[1];
    ends[0] = ends[1] = -1;
    return of_program;
}

void stderr_pipe_close(struct stderr_pipe *pipe)
{
    loop_fd_destroy(pipe->watch);
    pipe->watch = NULL;
    fd_close(&pipe->fd);
}
