/* SPDX-License-Identifier: Apache-2.0 */
#include "io/helpers.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"

#define LET_GO_GRACE_MS 1000

struct helper {
    pid_t pid;
    void (*exited)(void *context, int wait_status); /* NULL: no callback */
    void *context;
    int64_t kill_at_ms; /* 0: it is still wanted */
};

struct helpers {
    struct helper *items;
    size_t count, room;
};

struct helpers *helpers_create(void)
{
    return mem_alloc(sizeof(struct helpers));
}

/* A helper leads a session, so its group has the number of its pid: what it started (a proxy
 * command of ssh) goes with it. */
static void signal_group(const struct helper *helper, int signal)
{
    if (kill(-helper->pid, signal) < 0)
        kill(helper->pid, signal);
}

void helpers_destroy(struct helpers *helpers)
{
    if (helpers == NULL)
        return;
    for (size_t i = 0; i < helpers->count; i++)
        signal_group(&helpers->items[i], SIGKILL);
    free(helpers->items);
    free(helpers);
}

static struct helper *find(const struct helpers *helpers, pid_t pid)
{
    for (size_t i = 0; i < helpers->count; i++) {
        if (helpers->items[i].pid == pid)
            return &helpers->items[i];
    }
    return NULL;
}

pid_t helpers_start(struct helpers *helpers, const struct child_spec *spec,
                    void (*exited)(void *context, int wait_status), void *context,
                    struct error *err)
{
    struct child_spec full = *spec;
    sigset_t nothing_blocked;
    sigemptyset(&nothing_blocked);
    if (full.envp == NULL)
        full.envp = environ;
    if (full.mask == NULL)
        full.mask = &nothing_blocked; /* ours blocks what the loop hands out */
    pid_t pid = child_spawn(&full, NULL, err);
    if (pid < 0)
        return -1;
    MEM_ADD_ROOM(helpers->items, helpers->count, helpers->room) =
        (struct helper){.pid = pid, .exited = exited, .context = context};
    return pid;
}

void helpers_adopt(struct helpers *helpers, pid_t pid)
{
    MEM_ADD_ROOM(helpers->items, helpers->count, helpers->room) = (struct helper){.pid = pid};
}

void helpers_forget(struct helpers *helpers, pid_t pid)
{
    struct helper *helper = find(helpers, pid);
    if (helper != NULL)
        *helper = helpers->items[--helpers->count];
}

void helpers_let_go(struct helpers *helpers, pid_t pid)
{
    struct helper *helper = find(helpers, pid);
    if (helper == NULL || helper->kill_at_ms != 0)
        return;
    helper->exited = NULL;
    helper->kill_at_ms = clock_mono_ms() + LET_GO_GRACE_MS;
    signal_group(helper, SIGTERM);
    signal_group(helper, SIGCONT);
}

void helpers_kill_overdue(struct helpers *helpers)
{
    int64_t now = clock_mono_ms();
    for (size_t i = 0; i < helpers->count; i++) {
        struct helper *helper = &helpers->items[i];
        if (helper->kill_at_ms == 0 || helper->kill_at_ms > now)
            continue;
        signal_group(helper, SIGKILL);
    }
}

void helpers_exited(struct helpers *helpers, const struct reaper_exit *exit)
{
    struct helper *helper = find(helpers, exit->pid);
    if (helper != NULL) {
        struct helper gone = *helper;
        *helper = helpers->items[--helpers->count];
        if (gone.exited != NULL)
            gone.exited(gone.context, exit->wait_status);
    }
    helpers_kill_overdue(helpers);
}

size_t helpers_count(const struct helpers *helpers)
{
    return helpers->count;
}

bool helpers_has(const struct helpers *helpers, pid_t pid)
{
    return find(helpers, pid) != NULL;
}

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
