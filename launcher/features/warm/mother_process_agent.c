/* SPDX-License-Identifier: Apache-2.0 */
#include "features/warm/warm_agent.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "features/warm/holder.h"
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
    if (process->pid > 0 && helpers_has(process->config->helpers, process->pid))
        kill(-process->pid, SIGKILL); /* her session; ranks have their own */
    process->pid = 0;
}

static int send_setup(const struct mother_process *process, const struct warm_kind *kind,
                      const struct strv *left_out)
{
    AUTO_BUF struct buf message = BUF_INIT((size_t)1 << 20);
    const char command[2] = {kind->command, '\0'};
    fields_put(&message, "setup");
    fields_put_number(&message, (uint64_t)getpid());
    fields_put(&message, kind->command == 's' ? "script" : command);
    fields_put(&message, kind->target);
    for (const char *const *module = process->config->modules; *module != NULL; module++)
        fields_put(&message, *module);
    fields_put(&message, "");
    fields_put_all(&message, &kind->names);
    fields_put(&message, "");
    fields_put_all(&message, left_out);
    return (int)send(process->socket, buf_text(&message), message.length, MSG_NOSIGNAL);
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
    return helpers_start(process->config->helpers, &spec, NULL, NULL, err);
}

static void said(void *context, const char *line)
{
    const struct mother_process *process = context;
    log_info(process->config->log, "while modules were imported: %s", line);
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

static void watch(struct mother_process *process, int socket)
{
    process->socket = socket;
    process->watch = loop_fd_create(process->config->loop, socket, readable, process);
    loop_fd_watch(process->watch, LOOP_READ);
}

int mother_process_start(struct mother_process *process, const struct warm_kind *kind,
                         const sigset_t *mask, const struct strv *left_out, struct error *err)
{
    int ends[2] AUTO_FD_PAIR = {-1, -1};
    int source AUTO_FD = warm_file(mother_py, strlen(mother_py));
    if (source < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return error_errno(err, errno, "cannot open a socket");
    process->output = STDERR_PIPE_INIT;
    int output AUTO_FD =
        stderr_pipe_open(&process->output, process->config->loop, said, NULL, process);
    if (output < 0)
        return error_errno(err, errno, "cannot open a pipe");
    pid_t pid = spawn(process, kind, mask, (const int[]){source, output, ends[1]}, err);
    if (pid < 0)
        return -1;
    process->pid = pid;
    watch(process, ends[0]);
    ends[0] = -1;
    return send_setup(process, kind, left_out) < 0
               ? error_errno(err, errno, "cannot say what to import")
               : 0;
}

int mother_process_tell(const struct mother_process *process, const char *what)
{
    return send(process->socket, what, strlen(what) + 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -1 : 0;
}

void mother_process_adopt(struct mother_process *process, pid_t pid, int socket)
{
    helpers_adopt(process->config->helpers, pid);
    process->pid = pid;
    watch(process, socket);
}

void mother_process_release(struct mother_process *process, pid_t *pid, int *socket)
{
    helpers_forget(process->config->helpers, process->pid);
    loop_fd_destroy(process->watch);
    process->watch = NULL;
    *pid = process->pid;
    *socket = process->socket;
    process->pid = 0;
    process->socket = -1;
    mother_process_end(process);
}

int mother_process_send(struct mother_process *process, size_t ranks, bool first,
                        const struct buf *text, int *fds, size_t count)
{
    AUTO_BUF struct buf line = BUF_INIT(64);
    int file AUTO_FD = warm_file(buf_text(text), text->length);
    if (file < 0)
        return -1;
    fds[0] = file;
    fields_put(&line, "batch");
    fields_put_number(&line, ranks);
    fields_put(&line, first ? "1" : "0");
    return warm_send(process->socket, &line, fds, count);
}
