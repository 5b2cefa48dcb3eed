/* SPDX-License-Identifier: Apache-2.0 */
#include "io/stderr_pipe.h"

#include <errno.h>

#include "base/fd.h"

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
