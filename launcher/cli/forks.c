/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/forks.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/status.h"

/* Extends the area over the strings that follow it without a gap. */
static void extend(struct process_title *title, char *const *strings)
{
    for (; *strings != NULL && *strings == title->area + title->room; strings++)
        title->room += strlen(*strings) + 1;
}

struct process_title process_title_of(char *const *argv, char *const *envp)
{
    struct process_title title = {.area = argv[0]};
    if (argv[0] == NULL)
        return title;
    extend(&title, argv);
    extend(&title, envp);
    return title;
}

static char **move_environment(void)
{
    size_t count = 0;
    while (environ != NULL && environ[count] != NULL)
        count++;
    char **copy = mem_array(count + 1, sizeof(*copy));
    for (size_t i = 0; i < count; i++)
        copy[i] = mem_strdup(environ[i]);
    return environ = copy;
}

/* The kernel shows all bytes of argv, and ps drops the NULs at their end. But if the last byte is
 * not NUL, the kernel goes on to the first NUL, so a longer text may use the room of the
 * environment. */
void process_title_set(struct process_title *title, const char *text)
{
    size_t length = strlen(text);
    if (title->room == 0)
        return;
    title->environment = move_environment();
    if (length > title->room - 1)
        length = title->room - 1;
    memset(title->area, 0, title->room);
    memcpy(title->area, text, length);
}

#define ID_MAX ((size_t)1024)

/* What the parent has of the child. */
struct start {
    pid_t child;
    int id_fd, errors_fd, signals_fd;
};

/* Standard error goes to the parent: an agent keeps it for as long as the job runs, and that must
 * not be what somebody reads to its end. */
static int become_job(int errors_fd, struct error *err)
{
    int null AUTO_FD = fd_open("/dev/null", O_RDWR | O_CLOEXEC, 0);
    bool has_terminal = isatty(STDIN_FILENO) != 0;
    setsid();
    if (null < 0 || fd_dup2(errors_fd, STDERR_FILENO) < 0 || fd_dup2(null, STDOUT_FILENO) < 0 ||
        (has_terminal && fd_dup2(null, STDIN_FILENO) < 0))
        return error_errno(err, errno, "--detach: cannot replace the standard streams");
    return 0;
}

/* False: there is nothing more for now. */
static bool pass_errors(const struct start *start)
{
    char bytes[4096];
    ssize_t got = fd_read(start->errors_fd, bytes, sizeof(bytes));
    if (got > 0)
        fd_write_all(STDERR_FILENO, bytes, (size_t)got);
    return got > 0;
}

static void pass_signal(const struct start *start)
{
    struct signalfd_siginfo info;
    if (fd_read(start->signals_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        kill(start->child, (int)info.ssi_signo);
}

/* 0: the pipe has ended. -1: errno. */
static int read_id(const struct start *start, struct buf *id)
{
    struct pollfd fds[] = {{.fd = start->id_fd, .events = POLLIN},
                           {.fd = start->signals_fd, .events = POLLIN},
                           {.fd = start->errors_fd, .events = POLLIN}};
    for (;;) {
        char bytes[256];
        if (poll(fds, sizeof(fds) / sizeof(fds[0]), -1) < 0 && errno != EINTR)
            return -1;
        if ((fds[1].revents & POLLIN) != 0)
            pass_signal(start);
        if (fds[2].revents != 0 && !pass_errors(start))
            fds[2].fd = -1;
        if (fds[0].revents == 0)
            continue;
        ssize_t got = fd_read(start->id_fd, bytes, sizeof(bytes));
        if (got <= 0)
            return got == 0 ? 0 : -1;
        buf_append(id, bytes, (size_t)got);
    }
}

static int status_of(pid_t child)
{
    int status = 0;
    if (TEMP_FAILURE_RETRY(waitpid(child, &status, 0)) < 0)
        return STATUS_LAUNCHER;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static enum detach_side wait_for_start(const struct start *start, int *status, struct error *err)
{
    struct buf id AUTO_BUF = BUF_INIT(ID_MAX);
    if (read_id(start, &id) < 0) {
        error_errno(err, errno, "--detach: cannot wait for the start");
        return DETACH_FAILED;
    }
    *status = id.length > 0 ? 0 : status_of(start->child);
    while (pass_errors(start))
        continue;
    buf_putc(&id, '\n');
    if (id.length > 1 && fd_write_all(STDOUT_FILENO, buf_text(&id), id.length) < 0) {
        error_errno(err, errno, "cannot write");
        return DETACH_FAILED;
    }
    return DETACH_PARENT;
}

static enum detach_side fork_with(int id[2], int errors[2], int *started_fd, int *status,
                                  struct error *err)
{
    static const int passed[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    sigset_t set, before;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
        sigaddset(&set, passed[i]);
    sigprocmask(SIG_BLOCK, &set, &before);
    pid_t child = fork();
    if (child == 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        *started_fd = id[1];
        id[1] = -1;
        return become_job(errors[1], err) < 0 ? DETACH_FAILED : DETACH_CHILD;
    }
    int signals_fd AUTO_FD = signalfd(-1, &set, SFD_CLOEXEC);
    enum detach_side side = DETACH_FAILED;
    fd_close(&id[1]);
    fd_close(&errors[1]);
    struct start start = {child, id[0], errors[0], signals_fd};
    if (child < 0 || signals_fd < 0 || fd_nonblock(errors[0]) < 0)
        error_errno(err, errno, "--detach: cannot start a process");
    else
        side = wait_for_start(&start, status, err);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return side;
}

enum detach_side detach_fork(int *started_fd, int *status, struct error *err)
{
    int id[2] AUTO_FD_PAIR = {-1, -1}, errors[2] AUTO_FD_PAIR = {-1, -1};
    if (fd_pipe(id) == 0 && fd_pipe(errors) == 0)
        return fork_with(id, errors, started_fd, status, err);
    error_errno(err, errno, "--detach: cannot make a pipe");
    return DETACH_FAILED;
}
