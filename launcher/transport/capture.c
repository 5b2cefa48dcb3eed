/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "io/lines.h"

static void close_pair(int (*ends)[2])
{
    fd_close(&(*ends)[0]);
    fd_close(&(*ends)[1]);
}
#define AUTO_FD_PAIR __attribute__((cleanup(close_pair)))

struct capture {
    struct helpers *helpers;
    struct loop_timer *timer; /* the deadline, or "tell at once" */
    struct loop_fd *watches[2];
    int fds[2]; /* its stdout and stderr; -1: at end of file */
    pid_t pid;  /* 0: it has ended, or was never started */
    int wait_status;
    struct buf text;
    struct ssh_lines lines;
    char *name, *why;
    int64_t limit_ms;
    void (*done)(void *context, const struct capture_result *result);
    void *context;
};

void capture_cancel(struct capture *capture)
{
    if (capture == NULL)
        return;
    if (capture->pid > 0)
        helpers_let_go(capture->helpers, capture->pid);
    for (int i = 0; i < 2; i++) {
        loop_fd_destroy(capture->watches[i]);
        fd_close(&capture->fds[i]);
    }
    loop_timer_destroy(capture->timer);
    buf_destroy(&capture->text);
    free(capture->name);
    free(capture->why);
    free(capture);
}

static void tell(struct capture *capture)
{
    struct capture_result result = {.why = capture->why,
                                    .wait_status = capture->wait_status,
                                    .text = buf_text(&capture->text),
                                    .length = capture->text.length,
                                    .last_line = capture->lines.last};
    loop_timer_clear(capture->timer);
    void (*done)(void *, const struct capture_result *) = capture->done;
    capture->done = NULL;
    done(capture->context, &result);
    capture_cancel(capture);
}

static void give_up(struct capture *capture, char *why)
{
    free(capture->why);
    capture->why = why;
    tell(capture);
}

static void check_over(struct capture *capture)
{
    if (capture->pid != 0 || capture->fds[0] >= 0 || capture->fds[1] >= 0)
        return;
    ssh_lines_end(&capture->lines, NULL, NULL);
    tell(capture);
}

static void exited(void *context, int wait_status)
{
    struct capture *capture = context;
    capture->pid = 0;
    capture->wait_status = wait_status;
    check_over(capture);
}

/* True: the stream is at its end. */
static bool read_stream(struct capture *capture, int which)
{
    char bytes[4096];
    ssize_t got = fd_read(capture->fds[which], bytes, sizeof(bytes));
    if (got < 0 && errno == EAGAIN)
        return false;
    if (got <= 0) {
        loop_fd_destroy(capture->watches[which]);
        capture->watches[which] = NULL;
        fd_close(&capture->fds[which]);
        return true;
    }
    if (which == 1)
        ssh_lines_feed(&capture->lines, bytes, (size_t)got, NULL, NULL);
    else if (capture->why == NULL && buf_append(&capture->text, bytes, (size_t)got) < 0)
        capture->why =
            mem_printf("%s prints more than %zu bytes", capture->name, capture->text.limit);
    return false;
}

static void stdout_ready(void *context, int what)
{
    (void)what;
    if (read_stream(context, 0))
        check_over(context);
}

static void stderr_ready(void *context, int what)
{
    (void)what;
    if (read_stream(context, 1))
        check_over(context);
}

static void timer_fire(void *context)
{
    struct capture *capture = context;
    if (capture->why != NULL)
        tell(capture);
    else
        give_up(capture, mem_printf("%s did not end within %.3g s", capture->name,
                                    (double)capture->limit_ms / 1000));
}

static int spawn(struct capture *capture, struct loop *loop, char *const *argv, char *const *envp,
                 struct error *err)
{
    char *path AUTO_FREE = child_find(argv[0], getenv("PATH"), NULL, err);
    if (path == NULL)
        return -1;
    int out[2] AUTO_FD_PAIR = {-1, -1}, errors[2] AUTO_FD_PAIR = {-1, -1};
    int null_fd AUTO_FD = fd_open("/dev/null", O_RDONLY | O_CLOEXEC, 0);
    if (null_fd < 0 || fd_pipe(out) < 0 || fd_pipe(errors) < 0)
        return error_errno(err, errno, "cannot start %s", argv[0]);
    sigset_t mask;
    sigemptyset(&mask);
    const struct child_spec spec = {.path = path,
                                    .argv = argv,
                                    .envp = envp,
                                    .fds = {null_fd, out[1], errors[1]},
                                    .keep_fd = -1,
                                    .die_with_parent = true,
                                    .mask = &mask};
    pid_t pid = helpers_start(capture->helpers, &spec, exited, capture, err);
    if (pid < 0)
        return -1;
    capture->pid = pid;
    capture->fds[0] = out[0];
    capture->fds[1] = errors[0];
    out[0] = errors[0] = -1;
    for (int i = 0; i < 2; i++) {
        fd_nonblock(capture->fds[i]);
        capture->watches[i] =
            loop_fd_create(loop, capture->fds[i], i == 0 ? stdout_ready : stderr_ready, capture);
        loop_fd_watch(capture->watches[i], LOOP_READ);
    }
    return 0;
}

struct capture *capture_start(struct loop *loop, struct helpers *helpers, char *const *argv,
                              char *const *envp, size_t limit, int64_t limit_ms,
                              void (*done)(void *context, const struct capture_result *result),
                              void *context)
{
    struct capture *capture = mem_alloc(sizeof(*capture));
    *capture = (struct capture){.helpers = helpers,
                                .fds = {-1, -1},
                                .name = mem_strdup(argv[0]),
                                .limit_ms = limit_ms,
                                .done = done,
                                .context = context};
    buf_init(&capture->text, limit);
    capture->timer = loop_timer_create(loop, timer_fire, capture);
    struct error err = ERROR_INIT;
    bool started = spawn(capture, loop, argv, envp, &err) == 0;
    if (!started)
        capture->why = mem_strdup(err.text);
    loop_timer_set(capture->timer, started ? limit_ms : 0);
    return capture;
}
