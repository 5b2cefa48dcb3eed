/* SPDX-License-Identifier: Apache-2.0 */
#include "io/program.h"

#include <errno.h>
#include <fcntl.h>
#include <paths.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "io/helpers.h"

#define DRAIN_MS 500 /* reading on after the exit, while another process holds the pipe */
#define READ_BYTES ((size_t)16384)

struct program {
    struct helpers *helpers;
    const struct log *log;
    char *name;
    struct loop_timer *timer; /* the time limit, or the end of the drain */
    struct loop_fd *readable; /* its stdout */
    int out_fd;               /* -1: at end of file */
    struct stderr_pipe errors;
    pid_t pid;   /* 0: it has exited, or was never started */
    bool exited; /* and wait_status says how */
    int wait_status;
    bool drops_excess;
    int64_t time_max_ms;
    struct buf text;
    char *why; /* the failure that is known before the exit; NULL */
    void (*done)(void *context, const struct program_result *result);
    void *context;
};

static void close_output(struct program *program)
{
    loop_fd_destroy(program->readable);
    program->readable = NULL;
    fd_close(&program->out_fd);
}

void program_cancel(struct program *program)
{
    if (program == NULL)
        return;
    if (program->pid > 0) {
        kill(-program->pid, SIGKILL);
        helpers_let_go(program->helpers, program->pid);
    }
    close_output(program);
    stderr_pipe_close(&program->errors);
    loop_timer_destroy(program->timer);
    buf_destroy(&program->text);
    free(program->name);
    free(program->why);
    free(program);
}

static void log_line(void *context, const char *line)
{
    const struct program *program = context;
    if (program->log != NULL)
        log_info(program->log, "%s: %s", program->name, line);
}

static int exit_status(const struct program *program)
{
    bool has_status = program->why == NULL && program->exited && WIFEXITED(program->wait_status);
    return has_status ? WEXITSTATUS(program->wait_status) : -1;
}

static int exit_signal(const struct program *program)
{
    bool killed = program->why == NULL && program->exited && WIFSIGNALED(program->wait_status);
    return killed ? WTERMSIG(program->wait_status) : 0;
}

/* The caller's. NULL: it exited with status 0. */
static char *describe_exit(const struct program *program)
{
    const char *last = program->errors.lines.last;
    if (exit_status(program) == 0)
        return NULL;
    char *end AUTO_FREE = child_end_text(program->name, program->wait_status);
    return mem_printf("%s%s%s", end, last[0] != '\0' ? ": " : "", last);
}

/* The program is freed before `done` comes: its owner may destroy what it borrows. */
static void finish(struct program *program)
{
    stderr_lines_end(&program->errors.lines, log_line, program);
    char *why AUTO_FREE = program->why != NULL ? mem_strdup(program->why) : describe_exit(program);
    struct stderr_lines lines = program->errors.lines;
    struct buf text AUTO_BUF = program->text;
    buf_init(&program->text, 0);
    const struct program_result result = {.why = why,
                                          .status = exit_status(program),
                                          .signal = exit_signal(program),
                                          .last_line = lines.last,
                                          .text = buf_text(&text),
                                          .length = text.length};
    void (*done)(void *, const struct program_result *) = program->done;
    void *context = program->context;
    program_cancel(program);
    done(context, &result);
}

static void check_over(void *context)
{
    struct program *program = context;
    if (program->pid == 0 && program->out_fd < 0 && program->errors.fd < 0)
        finish(program);
}

static void exited(void *context, int wait_status)
{
    struct program *program = context;
    kill(-program->pid, SIGKILL); /* the number is not given away while members of the group live */
    program->pid = 0;
    program->exited = true;
    program->wait_status = wait_status;
    loop_timer_set(program->timer, DRAIN_MS);
    check_over(program);
}

static void time_over(void *context)
{
    struct program *program = context;
    const char *last = program->errors.lines.last;
    if (program->pid > 0 && program->why == NULL)
        program->why = mem_printf("%s did not end within %.3g s and was killed%s%s", program->name,
                                  (double)program->time_max_ms / 1000,
                                  last[0] != '\0' ? "; it said: " : "", last);
    finish(program);
}

/* What is more than wanted is read all the same, so that the program does not wait for us. False:
 * the run cannot go on. */
static bool take_output(struct program *program, const char *bytes, size_t length)
{
    size_t room = program->text.limit - program->text.length;
    if (length <= room || program->drops_excess) {
        buf_append(&program->text, bytes, length < room ? length : room);
        return true;
    }
    program->why = mem_printf("%s printed more than %zu bytes", program->name, program->text.limit);
    return false;
}

static void readable(void *context, int what)
{
    struct program *program = context;
    char bytes[READ_BYTES];
    (void)what;
    ssize_t got = fd_read(program->out_fd, bytes, sizeof(bytes));
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return;
    if (got <= 0) {
        close_output(program);
        check_over(program);
    } else if (!take_output(program, bytes, (size_t)got)) {
        finish(program);
    }
}

/* A file in memory: the program may read all of it at any time, and nobody has to feed it. */
static int open_input(const struct program_spec *spec)
{
    if (spec->input == NULL)
        return fd_open("/dev/null", O_RDONLY | O_CLOEXEC, 0);
    int fd = memfd_create("hvdrun-input", MFD_CLOEXEC);
    if (fd < 0)
        return -1;
    if (fd_write_all(fd, spec->input, spec->input_length) == 0 && lseek(fd, 0, SEEK_SET) == 0)
        return fd;
    fd_close(&fd);
    return -1;
}

static int spawn(struct program *program, const struct program_spec *spec, struct error *err)
{
    char *path AUTO_FREE = spec->path != NULL
                               ? mem_strdup(spec->path)
                               : child_find(spec->argv[0], getenv("PATH"), NULL, err);
    if (path == NULL)
        return -1;
    int out[2] AUTO_FD_PAIR = {-1, -1};
    int in_fd AUTO_FD = open_input(spec);
    int errors_fd AUTO_FD =
        stderr_pipe_open(&program->errors, spec->loop, log_line, check_over, program);
    if (in_fd < 0 || errors_fd < 0 || fd_pipe(out) < 0 || fd_nonblock(out[0]) < 0)
        return error_errno(err, errno, "cannot start %s", program->name);
    const struct child_spec child = {.path = path,
                                     .argv = spec->argv,
                                     .envp = spec->envp,
                                     .fds = {in_fd, out[1], errors_fd},
                                     .keep_fd = -1,
                                     .script_shell = _PATH_BSHELL};
    pid_t pid = helpers_start(program->helpers, &child, exited, program, err);
    if (pid < 0)
        return -1;
    program->pid = pid;
    program->out_fd = out[0];
    out[0] = -1;
    program->readable = loop_fd_create(spec->loop, program->out_fd, readable, program);
    loop_fd_watch(program->readable, LOOP_READ);
    return 0;
}

struct program *program_start(const struct program_spec *spec,
                              void (*done)(void *context, const struct program_result *result),
                              void *context)
{
    struct program *program = MEM_NEW(
        (struct program){.helpers = spec->helpers,
                         .log = spec->log,
                         .name = mem_strdup(spec->name != NULL ? spec->name : spec->argv[0]),
                         .out_fd = -1,
                         .errors = STDERR_PIPE_INIT,
                         .drops_excess = spec->drops_excess,
                         .time_max_ms = spec->time_max_ms,
                         .done = done,
                         .context = context});
    buf_init(&program->text, spec->output_max);
    program->timer = loop_timer_create(spec->loop, time_over, program);
    struct error err = ERROR_INIT;
    bool started = spawn(program, spec, &err) == 0;
    if (!started) {
        program->why = mem_strdup(err.text);
        stderr_pipe_close(&program->errors);
    }
    loop_timer_set(program->timer, started ? spec->time_max_ms : 0);
    return program;
}
