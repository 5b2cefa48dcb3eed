/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#if __has_include(<sys/pidfd.h>)
#include <sys/pidfd.h>
#endif
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/ending.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/status.h"
#include "io/pty.h"
#include "node/proc_state.h"
#include "wire/control.pb-c.h"

#define ERROR_FILE_MAX (64u << 10)
#define ROWS 24 /* of a terminal whose size nobody knows, as usual */
#define COLUMNS 80
#define STATE_PROCESSES 16
#define STATE_TEXT_MAX ((size_t)16 << 10)

const char *worker_state_name(enum worker_state state)
{
    static const char *const names[] = {
#define WORKER_STATE_NAME(name, text) [name] = (text),
        WORKER_STATE_LIST(WORKER_STATE_NAME)
#undef WORKER_STATE_NAME
    };
    return names[state];
}

void worker_init(struct worker *worker, const struct worker_shared *shared, uint32_t seat,
                 uint32_t rank)
{
    *worker = (struct worker){
        .shared = shared, .seat = seat, .rank = rank, .terminal_fd = -1, .pidfd = -1};
    sigemptyset(&worker->pending);
}

static void worker_unwatch_exit(struct worker *worker)
{
    loop_fd_destroy(worker->exit_watch);
    worker->exit_watch = NULL;
    fd_close(&worker->pidfd);
}

void worker_watch_exit(struct worker *worker, void (*ready)(void *context, int what), void *context)
{
    if (worker->pidfd < 0)
        worker->pidfd = pidfd_open(worker->pid, 0);
    if (worker->pidfd < 0)
        return;
    worker->exit_watch = loop_fd_create(worker->shared->loop, worker->pidfd, ready, context);
    loop_fd_watch(worker->exit_watch, LOOP_READ);
}

void worker_destroy(struct worker *worker)
{
    stream_destroy(worker->streams[0]);
    stream_destroy(worker->streams[1]);
    input_destroy(worker->input);
    loop_timer_destroy(worker->drain);
    worker_end_destroy(worker->end);
    worker_unwatch_exit(worker);
    fd_close(&worker->terminal_fd);
    free(worker->error_file);
    *worker = (struct worker){.terminal_fd = -1, .pidfd = -1};
}

static void worker_finish(struct worker *worker)
{
    bool cut = false;
    for (int i = 0; i < 2; i++)
        cut = cut || (worker->streams[i] != NULL && stream_missed(worker->streams[i]));
    if (cut)
        log_info(&worker->shared->post->log,
                 "rank %u has ended, but a process that it left behind keeps its output open: "
                 "hvdrun does not wait for more of it",
                 worker->rank);
    worker->state = WORKER_FINISHED;
    loop_timer_destroy(worker->drain);
    worker->drain = NULL;
    Hvdrun__Finished message = HVDRUN__FINISHED__INIT;
    message.seat = worker->seat;
    message.cut = cut;
    post_message(worker->shared->post, FRAME_FINISHED, &message.base);
    worker->shared->changed(worker->shared->context, worker);
}

static void stream_ended(void *context)
{
    struct worker *worker = context;
    worker->open_streams--;
    if (worker->open_streams == 0 && worker->state == WORKER_EXITED)
        worker_finish(worker);
}

void worker_cut(struct worker *worker)
{
    for (int i = 0; i < 2 && worker->state == WORKER_EXITED; i++) {
        if (worker->streams[i] != NULL)
            stream_cut(worker->streams[i]);
    }
}

static void drain_passed(void *context)
{
    worker_cut(context);
}

static void plumbing_close(struct plumbing *p, const struct worker_shared *shared)
{
    for (int i = 0; i < 3; i++) {
        int fd = p->child[i]; /* may be there more than once, but must be closed once */
        for (int j = i; j < 3; j++)
            p->child[j] = p->child[j] == fd ? -1 : p->child[j];
        if (fd != shared->null_fd)
            fd_close(&fd);
    }
}

/* Reading end for us, writing end for the child. */
static int plumb_output(struct plumbing *p, int i)
{
    int ends[2];
    if (fd_pipe(ends) < 0)
        return -1;
    p->ours[i] = ends[0];
    p->child[i] = ends[1];
    return fd_nonblock(ends[0]);
}

/* The worker has a session of its own, but this is not its controlling terminal, unless root opens
 * it for reading: so no signal comes from it, not even when its master closes. */
static int plumb_stdout(struct worker *worker, struct plumbing *p)
{
    const struct worker_shared *shared = worker->shared;
    bool known = shared->rows > 0;
    int ends[2];
    if (worker->output == WORKER_STDOUT_PIPE || worker->no_terminal != 0)
        return plumb_output(p, STDOUT_FILENO);
    if (pty_open_output(ends, known ? shared->rows : ROWS, known ? shared->columns : COLUMNS) < 0) {
        if (worker->output != WORKER_STDOUT_EITHER)
            return -1;
        worker->no_terminal = errno;
        return plumb_output(p, STDOUT_FILENO);
    }
    p->ours[STDOUT_FILENO] = ends[0];
    p->child[STDOUT_FILENO] = ends[1];
    return fd_nonblock(ends[0]);
}

static int plumb_pipes(struct worker *worker, struct plumbing *p, enum worker_stdin stdin_kind)
{
    p->child[0] = worker->shared->null_fd;
    if (stdin_kind == WORKER_STDIN_PIPE) {
        int ends[2];
        if (fd_pipe(ends) < 0)
            return -1;
        p->child[0] = ends[0];
        p->ours[0] = ends[1];
    }
    if (plumb_stdout(worker, p) < 0)
        return -1;
    if (!worker->shared->merge_stderr)
        return plumb_output(p, STDERR_FILENO);
    p->child[2] = p->child[1];
    return 0;
}

static int plumb_terminal(struct worker *worker, struct plumbing *p)
{
    int ends[2];
    if (pty_open(ends, worker->shared->rows, worker->shared->columns) < 0)
        return -1;
    p->ours[0] = ends[0];
    p->ours[1] = fcntl(ends[0], F_DUPFD_CLOEXEC, 3);
    worker->terminal_fd = fcntl(ends[0], F_DUPFD_CLOEXEC, 3);
    p->child[0] = p->child[1] = p->child[2] = ends[1];
    return p->ours[1] < 0 ? -1 : fd_nonblock(p->ours[1]);
}

static void worker_connect(struct worker *worker, struct plumbing *p, enum worker_stdin stdin_kind)
{
    const struct worker_shared *shared = worker->shared;
    for (int i = 0; i < 2; i++) {
        if (p->ours[i + 1] < 0)
            continue;
        worker->open_streams++;
        worker->streams[i] = stream_create(shared->pool, shared->post, p->ours[i + 1], worker->seat,
                                           (uint8_t)(i + 1), stream_ended, worker);
    }
    if (p->ours[0] >= 0)
        worker->input = input_create(shared->loop, shared->post, p->ours[0], worker->seat,
                                     stdin_kind == WORKER_STDIN_TERMINAL);
}

/* One that has never run. */
static void end_unstarted(struct worker *worker, Hvdrun__Exited *message)
{
    message->seat = worker->seat;
    message->when_ns = (uint64_t)clock_mono_ns();
    post_message(worker->shared->post, FRAME_EXITED, &message->base);
    worker->bad = true;
    worker->state = WORKER_EXITED;
    worker_end_failed(worker->end);
    worker->shared->changed(worker->shared->context, worker);
    worker_finish(worker);
}

void worker_fail(struct worker *worker, const struct error *err)
{
    Hvdrun__Exited message = HVDRUN__EXITED__INIT;
    message.exec_failed = true;
    message.status = (uint32_t)(err->status != 0 ? err->status : STATUS_LAUNCHER);
    message.code = (int32_t)message.status;
    message.text = (char *)err->text;
    end_unstarted(worker, &message);
}

static int plumb(struct worker *worker, struct plumbing *p, struct child_spec *spec,
                 enum worker_stdin stdin_kind, struct error *err)
{
    int result = stdin_kind == WORKER_STDIN_TERMINAL ? plumb_terminal(worker, p)
                                                     : plumb_pipes(worker, p, stdin_kind);
    if (result < 0) {
        error_errno(err, errno, "cannot create the pipes or terminal of rank %u", worker->rank);
        if (err->errnum == ENOSPC) /* pipes never say so */
            error_set(err,
                      "cannot create the terminal of rank %u: this host allows no more terminals; "
                      "raise kernel.pty.max or max= of /dev/pts%s",
                      worker->rank,
                      worker->output == WORKER_STDOUT_TERMINAL ? ", or use --pty for one rank only"
                                                               : "");
        err->status = STATUS_LAUNCHER;
        return -1;
    }
    memcpy(spec->fds, p->child, sizeof(spec->fds));
    spec->controlling_terminal = stdin_kind == WORKER_STDIN_TERMINAL;
    return 0;
}

/* Closes both sides. */
static void unplumb(struct worker *worker, struct plumbing *p)
{
    plumbing_close(p, worker->shared);
    for (int i = 0; i < 3; i++)
        fd_close(&p->ours[i]);
    fd_close(&worker->terminal_fd);
}

int worker_spawned(struct worker *worker, pid_t pid, const struct error *err)
{
    if (pid < 0) {
        worker_fail(worker, err);
        return -1;
    }
    worker->pid = pid;
    worker->started_ns = clock_mono_ns();
    worker->state = WORKER_RUNNING;
    return 0;
}

void worker_spawn_run(struct worker_spawn *spawn)
{
    struct worker *worker = spawn->worker;
    struct error err;
    error_init(&err);
    spawn->plumbing = (struct plumbing){{-1, -1, -1}, {-1, -1, -1}};
    spawn->pid = spawn->pidfd = -1;
    if (plumb(worker, &spawn->plumbing, &spawn->spec, spawn->stdin_kind, &err) == 0)
        spawn->pid = child_spawn(&spawn->spec, NULL, &err);
    fd_close(&spawn->spec.keep_fd);
    if (spawn->pid < 0) {
        unplumb(worker, &spawn->plumbing);
        spawn->err = mem_dup(&err, sizeof(err));
        return;
    }
    spawn->started_ns = clock_mono_ns();
    plumbing_close(&spawn->plumbing, worker->shared);
    spawn->pidfd = pidfd_open(spawn->pid, 0); /* always close-on-exec */
}

int worker_spawn_end(struct worker_spawn *spawn)
{
    struct worker *worker = spawn->worker;
    struct error *err AUTO_FREE = spawn->err;
    if (spawn->pid > 0)
        worker_connect(worker, &spawn->plumbing, spawn->stdin_kind);
    worker->pidfd = spawn->pidfd;
    worker->held = spawn->spec.stop_at_start && spawn->pid > 0;
    if (worker_spawned(worker, spawn->pid, err) < 0)
        return -1;
    worker->started_ns = spawn->started_ns;
    return 0;
}

bool worker_offer(struct worker *worker, struct child_spec *spec, enum worker_stdin stdin_kind,
                  const struct spawner *spawner,
                  void (*done)(void *context, pid_t pid, const struct error *err))
{
    struct plumbing p = {{-1, -1, -1}, {-1, -1, -1}};
    struct error err = ERROR_INIT;
    if (spawner == NULL || plumb(worker, &p, spec, stdin_kind, &err) < 0 ||
        !spawner->spawn(spawner->own, spec, done, worker)) {
        unplumb(worker, &p);
        return false;
    }
    plumbing_close(&p, worker->shared);
    worker->state = WORKER_STARTING;
    worker_connect(worker, &p, stdin_kind);
    return true;
}

void worker_drop(struct worker *worker, const struct spawner *spawner)
{
    if (worker->state != WORKER_STARTING)
        return;
    spawner->cancel(spawner->own, worker);
    worker->state = WORKER_PLANNED;
    worker_end_failed(worker->end);
}

bool worker_end_early(struct worker *worker, const struct spawner *spawner, int signal)
{
    Hvdrun__Exited message = HVDRUN__EXITED__INIT;
    if (worker->state != WORKER_STARTING)
        return false;
    spawner->cancel(spawner->own, worker);
    for (int i = 0; i < 2; i++) {
        stream_destroy(worker->streams[i]);
        worker->streams[i] = NULL;
    }
    worker->open_streams = 0;
    input_destroy(worker->input);
    worker->input = NULL;
    message.signaled = true;
    message.code = signal;
    end_unstarted(worker, &message);
    return true;
}

void worker_exited(struct worker *worker, const struct reaper_exit *exit, bool oom, bool ordered)
{
    AUTO_BUF struct buf account = BUF_INIT(ERROR_FILE_MAX);
    int status = exit->wait_status;
    Hvdrun__Exited message = HVDRUN__EXITED__INIT;
    message.seat = worker->seat;
    message.signaled = WIFSIGNALED(status);
    message.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    message.core = WIFSIGNALED(status) && WCOREDUMP(status);
    bool sooner = worker->ends_ns > 0 && !ordered;
    message.when_ns = (uint64_t)(sooner ? worker->ends_ns : exit->when_ns);
    message.ending_ns = (uint64_t)worker->ends_ns;
    message.oom = oom;
    message.user_us =
        (uint64_t)exit->usage.ru_utime.tv_sec * 1000000 + (uint64_t)exit->usage.ru_utime.tv_usec;
    message.system_us =
        (uint64_t)exit->usage.ru_stime.tv_sec * 1000000 + (uint64_t)exit->usage.ru_stime.tv_usec;
    message.max_rss_kb = (uint64_t)exit->usage.ru_maxrss;
    worker->bad = message.signaled || message.code != 0;
    struct stat file; /* a worker could put a FIFO there, which would block us */
    if (worker->bad && worker->error_file != NULL && lstat(worker->error_file, &file) == 0 &&
        S_ISREG(file.st_mode)) {
        fd_read_file(worker->error_file, &account, NULL);
        message.text = (char *)buf_text(&account);
    }
    post_message(worker->shared->post, FRAME_EXITED, &message.base);
    worker->state = WORKER_EXITED;
    worker_unwatch_exit(worker);
    worker_end_exited(worker->end);
    input_destroy(worker->input);
    worker->input = NULL;
    worker->shared->changed(worker->shared->context, worker);
    if (worker->open_streams == 0) {
        worker_finish(worker);
        return;
    }
    worker->drain = loop_timer_create(worker->shared->loop, drain_passed, worker);
    loop_timer_set(worker->drain, worker->shared->drain_ms);
}

void worker_signal(struct worker *worker, int signal)
{
    if (worker->held && signal == SIGCONT)
        return;
    if (worker->state == WORKER_RUNNING)
        worker_group_signal(worker->pid, signal);
    else if (worker->state == WORKER_STARTING && signal == SIGCONT)
        sigdelset(&worker->pending, SIGSTOP);
    else if (worker->state == WORKER_STARTING)
        sigaddset(&worker->pending, signal);
}

void worker_signal_pending(struct worker *worker)
{
    for (int signal = 1; signal < NSIG; signal++) {
        if (sigismember(&worker->pending, signal) == 1 && signal != SIGSTOP)
            worker_group_signal(worker->pid, signal);
    }
    if (sigismember(&worker->pending, SIGSTOP) == 1)
        worker_group_signal(worker->pid, SIGSTOP);
    sigemptyset(&worker->pending);
}

void worker_begin_end(struct worker *worker, bool paused, int signal, int64_t grace_ms)
{
    if (worker->end == NULL) {
        worker->end = worker_end_create(worker->shared->loop, paused);
        if (worker->pid > 0)
            worker_end_started(worker->end, worker->pid);
        if (worker->state == WORKER_EXITED || worker->state == WORKER_FINISHED) {
            if (worker->pid > 0)
                worker_end_exited(worker->end);
            else
                worker_end_failed(worker->end);
        }
    }
    worker_end_begin(worker->end, signal, grace_ms);
}

void worker_resize(const struct worker *worker, int rows, int columns)
{
    struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns};
    if (worker->terminal_fd >= 0)
        ioctl(worker->terminal_fd, TIOCSWINSZ, &size);
}

char *worker_state_text(const struct worker *worker, const struct descendants_table *processes)
{
    struct buf text = BUF_INIT(STATE_TEXT_MAX);
    if (worker->state != WORKER_RUNNING) {
        buf_puts(&text, worker_state_name(worker->state));
        return buf_take(&text);
    }
    proc_state_report(processes, worker->pid, STATE_PROCESSES, &text);
    buf_consume(&text, strspn(buf_text(&text), " "));
    while (text.length > 0 && buf_text(&text)[text.length - 1] == '\n')
        buf_truncate(&text, text.length - 1);
    return buf_take(&text);
}
