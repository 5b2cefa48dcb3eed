/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The helper programs that a process owns (ssh, a proxy command, `ssh -G`, kubectl, nvidia-smi).
 * Each has a session of its own, so Ctrl-C reaches only us. They are known by pid, so that a sweep
 * for what dead agents left behind spares them and all processes below them. The owner of the
 * reaper hands their exits in.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "io/child.h"
#include "io/loop.h"
#include "io/reaper.h"

struct helpers;

struct helpers *helpers_create(void);
void helpers_destroy(struct helpers *helpers); /* kills those that still run; accepts NULL */

/* Starts `spec` with the rest of the user's environment when spec->envp is NULL. `exited` (may be
 * NULL) comes once, from helpers_exited(), unless the helper was let go before. */
pid_t helpers_start(struct helpers *helpers, const struct child_spec *spec,
                    void (*exited)(void *context, int wait_status), void *context,
                    struct error *err);

/* One more helper, started elsewhere. It leads a process group, or is about to. */
void helpers_adopt(struct helpers *helpers, pid_t pid);

/* It goes on, and is not a helper any more. */
void helpers_forget(struct helpers *helpers, pid_t pid);

/* Ends it without a callback: TERM now, KILL if it is still there after a second (checked when
 * other exits come, and at the end). */
void helpers_let_go(struct helpers *helpers, pid_t pid);

/* KILL to those that were let go a second ago or more. */
void helpers_kill_overdue(struct helpers *helpers);

void helpers_exited(struct helpers *helpers, const struct reaper_exit *exit);
/* Started here and not yet reaped. */
bool helpers_has(const struct helpers *helpers, pid_t pid);
size_t helpers_count(const struct helpers *helpers);

/*
 * The stderr of a program that we start: our end of a pipe. The loop reads it line by line,
 * until all writers have closed the other end.
 *
 * First, it turns the bytes of another program's stderr into lines that may be shown: without
 * control characters, at most STDERR_LINE_MAX bytes long (the rest of a longer line is dropped),
 * and at most STDERR_LINES_MAX of them. After that only the last line is remembered. Pure.
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
