/* SPDX-License-Identifier: Apache-2.0 */
#include "features/warm/mother_process_agent.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "stacks/python.h"

#define ANSWER_MAX 65536 /* bytes */

__asm__(".pushsection .rodata\n.globl mother_py\n.hidden mother_py\n.type mother_py, @object\n"
        "mother_py:\n.incbin \"" HVDRUN_MOTHER "\"\n.byte 0\n.popsection\n");
extern const char mother_py[];

#define BOOT "exec(compile(open(0, 'rb').read(), '" PYTHON_MOTHER_FILE "', 'exec'))"

void mother_process_end(struct mother_process *process)
{
    loop_fd_destroy(process->watch);
    process->watch = NULL;
    fd_close(&process->socket);
    stderr_pipe_close(&process->output);
    if (process->pid > 0 && helpers_has(process->helpers, process->pid))
        kill(-process->pid, SIGKILL); /* her session; ranks have their own */
    process->pid = 0;
}

static void put_field(struct buf *message, const char *text)
{
    buf_append(message, text, strlen(text) + 1);
}

static void put_fields(struct buf *message, const struct strv *list)
{
    for (size_t i = 0; i < list->count; i++)
        put_field(message, list->items[i]);
}

static int send_setup(const struct mother_process *process, const struct warm_kind *kind,
                      const char *const *modules, const struct strv *left_out)
{
    AUTO_BUF struct buf message = BUF_INIT((size_t)1 << 20);
    const char command[2] = {kind->command, '\0'};
    put_field(&message, "setup");
    buf_printf(&message, "%d", (int)getpid());
    buf_putc(&message, '\0');
    put_field(&message, kind->command == 's' ? "script" : command);
    put_field(&message, kind->target);
    for (; *modules != NULL; modules++)
        put_field(&message, *modules);
    put_field(&message, "");
    put_fields(&message, &kind->names);
    put_field(&message, "");
    put_fields(&message, left_out);
    return (int)send(process->socket, buf_text(&message), message.length, MSG_NOSIGNAL);
}

/* A file in memory with these bytes, at its beginning; -1 and errno. */
static int file_of(const void *bytes, size_t length)
{
    int fd = memfd_create("hvdrun-warm", MFD_CLOEXEC);
    if (fd >= 0 && (fd_write_all(fd, bytes, length) < 0 || lseek(fd, 0, SEEK_SET) < 0))
        fd_close(&fd);
    return fd;
}

static pid_t spawn(struct mother_process *process, const struct warm_kind *kind,
                   const sigset_t *mask, const int *fds, struct error *err)
{
    AUTO_STRV struct strv argv = STRV_INIT;
    strv_copy(&argv, kind->interpreter.items);
    strv_add(&argv, "-c");
    strv_add(&argv, BOOT);
    strv_printf(&argv, "%d", fds[2]);
    struct child_spec spec = {.path = kind->path,
                              .argv = strv_items(&argv),
                              .envp = strv_items(&kind->env),
                              .wdir = kind->wdir,
                              .fds = {fds[0], fds[1], fds[1]},
                              .keep_fd = fds[2],
                              .mask = mask,
                              .script_shell = "/bin/sh"};
    return helpers_start(process->helpers, &spec, NULL, NULL, err);
}

static void said(void *context, const char *line)
{
    const struct mother_process *process = context;
    log_info(process->log, "while modules were imported: %s", line);
}

const char *mother_next_field(const char *field, const char *end)
{
    const char *next = field + strlen(field) + 1;
    return next < end ? next : end;
}

static void readable(void *context, int what)
{
    struct mother_process *process = context;
    char *text AUTO_FREE = mem_alloc(ANSWER_MAX + 2);
    (void)what;
    ssize_t length = recv(process->socket, text, ANSWER_MAX, MSG_DONTWAIT);
    if (length > 0)
        process->heard(process->context, text, text + length);
    else if (length == 0 || (errno != EAGAIN && errno != EINTR))
        process->lost(process->context);
}

int mother_process_start(struct mother_process *process, const struct warm_kind *kind,
                         const sigset_t *mask, const char *const *modules,
                         const struct strv *left_out, struct error *err)
{
    int ends[2] AUTO_FD_PAIR = {-1, -1};
    int source AUTO_FD = file_of(mother_py, strlen(mother_py));
    if (source < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return error_errno(err, errno, "cannot open a socket");
    process->output = STDERR_PIPE_INIT;
    int output AUTO_FD = stderr_pipe_open(&process->output, process->loop, said, NULL, process);
    if (output < 0)
        return error_errno(err, errno, "cannot open a pipe");
    pid_t pid = spawn(process, kind, mask, (const int[]){source, output, ends[1]}, err);
    if (pid < 0)
        return -1;
    process->pid = pid;
    process->socket = ends[0];
    ends[0] = -1;
    process->watch = loop_fd_create(process->loop, process->socket, readable, process);
    loop_fd_watch(process->watch, LOOP_READ);
    return send_setup(process, kind, modules, left_out) < 0
               ? error_errno(err, errno, "cannot say what to import")
               : 0;
}

int mother_process_send(struct mother_process *process, size_t ranks, bool first,
                        const struct buf *text, int *fds, size_t count)
{
    AUTO_BUF struct buf line = BUF_INIT(64);
    union {
        char bytes[CMSG_SPACE(MOTHER_FILES_MAX * sizeof(int))];
        struct cmsghdr align;
    } control;
    int file AUTO_FD = file_of(buf_text(text), text->length);
    if (file < 0)
        return -1;
    fds[0] = file;
    put_field(&line, "batch");
    buf_printf(&line, "%zu", ranks);
    put_field(&line, "");
    put_field(&line, first ? "1" : "0");
    struct iovec part = {(char *)buf_text(&line), line.length};
    memset(&control, 0, sizeof(control));
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = CMSG_SPACE(count * sizeof(int))};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(header), fds, count * sizeof(int));
    return sendmsg(process->socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -1 : 0;
}
