/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/srun/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "io/stderr_pipe.h"
#include "transport/srun/command.h"

#define SAID_MAX ((size_t)8192)

struct srun_process {
    struct helpers *helpers;
    const struct srun_process_events *events;
    void *context;
    pid_t pid; /* 0: it has ended, or was let go */
    int wait_status;
    struct stderr_pipe errors;
    struct buf said;
};

static void said(void *context, const char *line)
{
    struct srun_process *process = context;
    buf_printf(&process->said, "%s\n", line); /* a line for which there is no room is left out */
    process->events->line(process->context, line);
}

static void silent(void *context)
{
    struct srun_process *process = context;
    process->events->silent(process->context);
}

static void exited(void *context, int wait_status)
{
    struct srun_process *process = context;
    process->pid = 0;
    process->wait_status = wait_status;
    process->events->exited(process->context, wait_status);
}

static int spawn(struct srun_process *process, const struct srun_process_spec *spec,
                 struct error *err)
{
    const struct srun_settings *settings = spec->settings;
    AUTO_STRV struct strv argv = STRV_INIT, env = STRV_INIT;
    AUTO_FREE char *path = child_find("srun", getenv("PATH"), NULL, NULL);
    struct srun_command command = {.options = spec->options,
                                   .nodes = strv_items(spec->nodes),
                                   .arguments = spec->arguments,
                                   .agent_path = settings->agent_path};
    struct srun_secrets secrets = {.addresses = settings->addresses,
                                   .port = dial_back_port(spec->dial),
                                   .key = dial_back_key(spec->dial),
                                   .job_id = settings->room->job_id};
    if (path == NULL)
        return error_set(err, "srun was not found in PATH: add the folder of Slurm's programs to "
                              "it, or reach the nodes with --transport ssh");
    AUTO_FD int null_fd = fd_open("/dev/null", O_RDWR | O_CLOEXEC, 0);
    if (null_fd < 0)
        return error_errno(err, errno, "cannot start srun");
    AUTO_FD int errors_fd =
        stderr_pipe_open(&process->errors, settings->room->loop, said, silent, process);
    if (errors_fd < 0)
        return error_errno(err, errno, "cannot create a pipe for srun");
    srun_command_argv(&command, &argv);
    srun_command_env(environ, &secrets, &env);
    struct child_spec child = {.path = path,
                               .argv = strv_items(&argv),
                               .envp = strv_items(&env),
                               .fds = {null_fd, errors_fd, errors_fd},
                               .keep_fd = -1};
    /* Without its srun Slurm kills the step, agents in the middle of cleaning up included. They end
     * when we are gone, and srun ends with them. */
    process->pid = helpers_start_lasting(process->helpers, &child, exited, process, err);
    return process->pid < 0 ? -1 : 0;
}

struct srun_process *srun_process_start(const struct srun_process_spec *spec,
                                        const struct srun_process_events *events, void *context,
                                        struct error *err)
{
    struct srun_process *process = mem_alloc(sizeof(*process));
    *process = (struct srun_process){.helpers = spec->settings->room->helpers,
                                     .events = events,
                                     .context = context,
                                     .errors = STDERR_PIPE_INIT,
                                     .said = BUF_INIT(SAID_MAX)};
    if (spawn(process, spec, err) == 0)
        return process;
    srun_process_destroy(process);
    return NULL;
}

void srun_process_let_go(struct srun_process *process)
{
    srun_process_ignore(process);
    if (process->pid > 0)
        helpers_let_go(process->helpers, process->pid);
    process->pid = 0;
}

void srun_process_destroy(struct srun_process *process)
{
    if (process == NULL)
        return;
    srun_process_let_go(process);
    buf_destroy(&process->said);
    free(process);
}

void srun_process_ask(struct srun_process *process)
{
    if (process->pid > 0)
        kill(-process->pid, SIGTERM); /* a helper leads a group of its own */
}

void srun_process_ignore(struct srun_process *process)
{
    stderr_pipe_close(&process->errors);
}

bool srun_process_is_silent(const struct srun_process *process)
{
    return process->errors.fd < 0;
}

const char *srun_process_said(const struct srun_process *process)
{
    return buf_text(&process->said);
}

const char *srun_process_last_line(const struct srun_process *process)
{
    return process->errors.lines.last;
}

char *srun_process_end(const struct srun_process *process)
{
    int status = process->wait_status;
    if (WIFSIGNALED(status))
        return mem_printf("srun was killed by signal %d (%s)", WTERMSIG(status),
                          strsignal(WTERMSIG(status)));
    return mem_printf("srun ended with exit status %d", WEXITSTATUS(status));
}
