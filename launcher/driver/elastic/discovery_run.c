/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/elastic/discovery_run.h"

#include <errno.h>
#include <fcntl.h>
#include <paths.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/status.h"
#include "io/lines.h"

#define DRAIN_MS 500       /* reading on after the end, while somebody holds the pipe */
#define HARD_DEATH_MS 2000 /* that a killed program may take to end */
#define CHUNK ((size_t)16384)

enum { OUT, ERRORS, STREAMS };

struct stream {
    int fd; /* -1: at its end */
    struct loop_fd *ready;
};

struct discovery_run {
    const struct discovery_program *program;
    struct loop_timer *timer; /* the limit of the stage that the run is in */
    struct stream streams[STREAMS];
    pid_t pid;  /* 0: it has ended, or was never started */
    bool ended; /* and wait_status says how */
    int wait_status;
    struct buf text;
    struct ssh_lines lines; /* of stderr */
    char *why;
    void (*done)(void *context, const struct discovery_result *result);
    void *context;
};

static void close_stream(struct stream *stream)
{
    loop_fd_destroy(stream->ready);
    stream->ready = NULL;
    fd_close(&stream->fd);
}

static void kill_group(pid_t pid)
{
    if (kill(-pid, SIGKILL) < 0)
        kill(pid, SIGKILL);
}

void discovery_run_cancel(struct discovery_run *run)
{
    if (run == NULL)
        return;
    if (run->pid > 0) {
        kill_group(run->pid);
        helpers_let_go(run->program->helpers, run->pid);
    }
    for (int i = 0; i < STREAMS; i++)
        close_stream(&run->streams[i]);
    loop_timer_destroy(run->timer);
    buf_destroy(&run->text);
    free(run->why);
    free(run);
}

static void tell_line(void *context, const char *line)
{
    const struct discovery_run *run = context;
    log_info(run->program->log, "%s: %s", run->program->name, line);
}

/* Why it ended otherwise than it should (the caller's); NULL: it did not. */
static char *describe_end(const struct discovery_run *run)
{
    const char *name = run->program->name, *last = run->lines.last;
    const char *colon = last[0] != '\0' ? ": " : "";
    if (!run->ended)
        return NULL;
    if (WIFSIGNALED(run->wait_status))
        return mem_printf("%s was killed by signal %d (%s)%s%s", name, WTERMSIG(run->wait_status),
                          strsignal(WTERMSIG(run->wait_status)), colon, last);
    if (WEXITSTATUS(run->wait_status) != 0)
        return mem_printf("%s ended with exit status %d%s%s", name, WEXITSTATUS(run->wait_status),
                          colon, last);
    return NULL;
}

/* The run is gone before its owner hears of it: he may remove all that it borrows. */
static void finish(struct discovery_run *run)
{
    ssh_lines_end(&run->lines, tell_line, run);
    bool killed = run->why == NULL && run->ended && WIFSIGNALED(run->wait_status);
    char *why AUTO_FREE = run->why != NULL ? run->why : describe_end(run);
    struct ssh_lines lines = run->lines;
    struct buf text AUTO_BUF = run->text;
    run->why = NULL;
    buf_init(&run->text, 0);
    struct discovery_result result = {.why = why,
                                      .signal = killed ? WTERMSIG(run->wait_status) : 0,
                                      .last_line = lines.last,
                                      .text = buf_text(&text),
                                      .length = text.length};
    void (*done)(void *, const struct discovery_result *) = run->done;
    void *context = run->context;
    discovery_run_cancel(run);
    done(context, &result);
}

static void check_over(struct discovery_run *run)
{
    if (run->pid == 0 && run->streams[OUT].fd < 0 && run->streams[ERRORS].fd < 0)
        finish(run);
}

static void exited(void *context, int wait_status)
{
    struct discovery_run *run = context;
    kill(-run->pid, SIGKILL); /* what it left; the number is not given away while they live */
    run->pid = 0;
    run->ended = true;
    run->wait_status = wait_status;
    loop_timer_set(run->timer, DRAIN_MS);
    check_over(run);
}

/* It has gone too far: `why` is the verdict, whatever its exit says. */
static void stop(struct discovery_run *run, char *why)
{
    run->why = why;
    kill_group(run->pid);
    loop_timer_set(run->timer, HARD_DEATH_MS);
}

static void timer_fire(void *context)
{
    struct discovery_run *run = context;
    if (run->pid == 0 || run->why != NULL)
        finish(run);
    else
        stop(run, mem_printf("%s did not end within %.3g s and was killed%s%s", run->program->name,
                             (double)run->program->limit_ms / 1000,
                             run->lines.last[0] != '\0' ? "; it said: " : "", run->lines.last));
}

static void take(struct discovery_run *run, int which, const char *bytes, size_t length)
{
    if (which == ERRORS) {
        ssh_lines_feed(&run->lines, bytes, length, tell_line, run);
        return;
    }
    if (run->why != NULL || buf_append(&run->text, bytes, length) == 0)
        return;
    char *why = mem_printf("%s prints more than %zu bytes; expected a list of hosts",
                           run->program->name, run->program->limit);
    if (run->pid > 0)
        stop(run, why);
    else
        run->why = why;
}

static void read_stream(struct discovery_run *run, int which)
{
    char bytes[CHUNK];
    ssize_t got = fd_read(run->streams[which].fd, bytes, sizeof(bytes));
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return;
    if (got > 0) {
        take(run, which, bytes, (size_t)got);
        return;
    }
    close_stream(&run->streams[which]);
    check_over(run);
}

static void out_ready(void *context, int what)
{
    (void)what;
    read_stream(context, OUT);
}

static void errors_ready(void *context, int what)
{
    (void)what;
    read_stream(context, ERRORS);
}

static int spawn(struct discovery_run *run, const int *ends, int null_fd, struct error *err)
{
    const struct discovery_program *program = run->program;
    const struct child_spec spec = {.path = program->path,
                                    .argv = program->argv,
                                    .envp = program->envp,
                                    .fds = {null_fd, ends[OUT], ends[ERRORS]},
                                    .keep_fd = -1,
                                    .script_shell = _PATH_BSHELL};
    run->pid = helpers_start(program->helpers, &spec, exited, run, err);
    if (run->pid > 0)
        return 0;
    run->pid = 0;
    return -1;
}

static int start(struct discovery_run *run, struct error *err)
{
    void (*const ready[STREAMS])(void *, int) = {out_ready, errors_ready};
    int out[2] = {-1, -1}, errors[2] = {-1, -1};
    int null_fd AUTO_FD = fd_open("/dev/null", O_RDONLY | O_CLOEXEC, 0);
    int result = -1;
    if (null_fd < 0 || fd_pipe(out) < 0 || fd_pipe(errors) < 0)
        error_errno(err, errno, "cannot start %s", run->program->name);
    else
        result = spawn(run, (const int[]){out[1], errors[1]}, null_fd, err);
    fd_close(&out[1]);
    fd_close(&errors[1]);
    run->streams[OUT].fd = out[0];
    run->streams[ERRORS].fd = errors[0];
    for (int i = 0; result == 0 && i < STREAMS; i++) {
        struct stream *stream = &run->streams[i];
        fd_nonblock(stream->fd);
        stream->ready = loop_fd_create(run->program->loop, stream->fd, ready[i], run);
        loop_fd_watch(stream->ready, LOOP_READ);
    }
    return result;
}

struct discovery_run *discovery_run_start(const struct discovery_program *program,
                                          void (*done)(void *context,
                                                       const struct discovery_result *result),
                                          void *context)
{
    struct discovery_run *run = mem_alloc(sizeof(*run));
    *run = (struct discovery_run){
        .program = program, .streams = {{.fd = -1}, {.fd = -1}}, .done = done, .context = context};
    buf_init(&run->text, program->limit);
    run->timer = loop_timer_create(program->loop, timer_fire, run);
    struct error err = ERROR_INIT;
    bool started = start(run, &err) == 0;
    if (!started)
        run->why = mem_strdup(err.text);
    loop_timer_set(run->timer, started ? program->limit_ms : 0);
    return run;
}
