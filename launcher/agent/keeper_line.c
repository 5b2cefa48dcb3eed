/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/keeper_line.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

struct keeper_line {
    int fd;
    struct loop_fd *watch;
    void (*lost)(void *context);
    void *context;
};

/* The keeper never writes: only its end makes the line readable. */
static void ready(void *context, int what)
{
    struct keeper_line *line = context;
    (void)what;
    loop_fd_watch(line->watch, 0);
    line->lost(line->context);
}

struct keeper_line *keeper_line_create(struct loop *loop, int fd, void (*lost)(void *context),
                                       void *context)
{
    if (fd < 0)
        return NULL;
    struct keeper_line *line = mem_alloc(sizeof(*line));
    *line = (struct keeper_line){.fd = fd, .lost = lost, .context = context};
    line->watch = loop_fd_create(loop, fd, ready, line);
    loop_fd_watch(line->watch, LOOP_READ);
    return line;
}

/* The process that made the line; it is still ours to signal if it is our parent. */
static void wake_keeper(const struct keeper_line *line)
{
    struct ucred peer = {.pid = 0};
    socklen_t length = sizeof(peer);
    if (getsockopt(line->fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.pid > 0 &&
        peer.pid == getppid())
        kill(peer.pid, SIGCONT);
}

void keeper_line_destroy(struct keeper_line *line)
{
    if (line == NULL)
        return;
    wake_keeper(line);
    loop_fd_destroy(line->watch);
    fd_close(&line->fd);
    free(line);
}

void keeper_line_beat(struct keeper_line *line, int64_t silence_ms, int64_t grace_ms)
{
    if (line == NULL)
        return;
    struct keeper_beat beat = {silence_ms, grace_ms};
    /* One that does not fit need not be said: the keeper is stalled and has enough to read. */
    send(line->fd, &beat, sizeof(beat), MSG_DONTWAIT | MSG_NOSIGNAL);
}
