/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/srun/process.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/strv.h"
#include "io/dial_ends.h"
#include "io/helpers.h"
#include "model/hosts/hostlist_range.h"
#include "transport/srun/process_test.h"

/*
 * What the srun of this site can do: its --help in, a set of options out. Versions and sites (their
 * plug-ins) differ, so a version number would tell nothing. Pure.
 */

static bool is_name(char byte)
{
    return isalnum((unsigned char)byte) || byte == '-' || byte == '_';
}

static bool has(const char *text, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = strstr(text, "--"); at != NULL; at = strstr(at + 1, "--")) {
        bool begins = at == text || !is_name(at[-1]);
        if (begins && strncmp(at + 2, name, length) == 0 && !is_name(at[2 + length]))
            return true;
    }
    return false;
}

bool srun_options_parse(const char *text, struct srun_options *options)
{
    static const char *const names[] = {
#define SRUN_OPTION_NAME(id, name) [id] = (name),
        SRUN_OPTION_LIST(SRUN_OPTION_NAME)
#undef SRUN_OPTION_NAME
    };
    *options = (struct srun_options){.has = {false}};
    if (!has(text, "nodelist"))
        return false;
    for (size_t i = 0; i < SRUN_OPTIONS; i++)
        options->has[i] = has(text, names[i]);
    return true;
}

/*
 * The command that starts agents in a Slurm job: one srun with one task on each of some nodes.
 * Pure.
 *
 * Its step shares all that the job has there (CPUs, memory, GPUs) with other steps. It binds
 * nothing and waits for no other step. It outlives a node that fails (--no-kill): the driver names
 * that node and ends the workers on the others in the usual way. A batch job has variables about
 * its own tasks: their number, CPUs, GPUs, memory. srun would read them as options of this step, so
 * they are left out.
 */

#define LIST_MAX ((size_t)64 << 20)

static void add_if(struct strv *argv, const struct srun_options *options, enum srun_option option,
                   const char *word)
{
    if (options->has[option])
        strv_add(argv, word);
}

static char *join(char *const *words, size_t *count)
{
    AUTO_BUF struct buf list = BUF_INIT(LIST_MAX);
    for (*count = 0; words[*count] != NULL; ++*count)
        buf_printf(&list, "%s%s", *count > 0 ? "," : "", words[*count]);
    return buf_take(&list);
}

void srun_command_argv(const struct srun_command *command, struct strv *argv)
{
    const struct srun_options *has = command->options;
    size_t count = 0;
    char *nodes AUTO_FREE = join(command->nodes, &count);
    strv_add(argv, "srun");
    strv_printf(argv, "-N%zu", count);
    strv_printf(argv, "-n%zu", count);
    add_if(argv, has, SRUN_NTASKS_PER_NODE, "--ntasks-per-node=1");
    strv_add(argv, "-w");
    strv_add(argv, nodes);
    add_if(argv, has, SRUN_EXPORT, "--export=ALL");
    add_if(argv, has, SRUN_OVERLAP, "--overlap");
    add_if(argv, has, SRUN_KILL_ON_BAD_EXIT, "--kill-on-bad-exit=1");
    add_if(argv, has, SRUN_NO_KILL, "--no-kill");
    add_if(argv, has, SRUN_WAIT, "--wait=0");
    add_if(argv, has, SRUN_MPI, "--mpi=none");
    if (has->has[SRUN_CPU_BIND])
        strv_add(argv, "--cpu-bind=none");
    else
        add_if(argv, has, SRUN_CPU_BIND_OLD, "--cpu_bind=none");
    add_if(argv, has, SRUN_MEM, "--mem=0"); /* all that the job has, counted for no step */
    add_if(argv, has, SRUN_INPUT, "--input=none");
    add_if(argv, has, SRUN_CHDIR, "--chdir=/"); /* our folder need not be there */
    add_if(argv, has, SRUN_JOB_NAME, "--job-name=hvdrun-agent");
    if (command->arguments != NULL)
        strv_copy(argv, strv_items(command->arguments));
    strv_add(argv, command->agent_path);
    strv_add(argv, "--dial");
}

/* '*' at the end: whatever begins so. */
static const char *const left_out[] = {
    "HVDRUN_AGENT_*",
    /* as many tasks, laid out so */
    "SLURM_NTASKS*", "SLURM_NPROCS", "SLURM_TASKS_PER_NODE", "SLURM_DISTRIBUTION",
    "SLURM_DIST_PLANESIZE", "SLURM_HOSTFILE", "SLURM_ARBITRARY_NODELIST", "SLURM_SPREAD_JOB",
    "SLURM_MULTI_PROG", "SLURM_OVERCOMMIT",
    /* with so much of everything, and bound so */
    "SLURM_CPUS_PER_*", "SRUN_CPUS_PER_*", "SLURM_CPU_BIND*", "SLURM_MEM_*",
    "SLURM_THREADS_PER_CORE", "SLURM_HINT", "SLURM_CORE_SPEC", "SLURM_THREAD_SPEC", "SLURM_EXACT",
    "SLURM_EXCLUSIVE", "SLURM_WHOLE", "SLURM_GRES", "SLURM_GRES_FLAGS", "SLURM_STEP_*",
    "SLURM_GPUS", "SLURM_GPUS_PER_TASK", "SLURM_GPUS_PER_SOCKET", "SLURM_GPU_BIND",
    "SLURM_TRES_PER_TASK", "SLURM_TRES_BIND", "SLURM_ACCEL_BIND",
    /* ended so */
    "SLURM_KILL_BAD_EXIT", "SLURM_WAIT", "SLURM_NO_KILL", "SLURM_TIMELIMIT", "SLURM_SIGNAL",
    "SLURM_IMMEDIATE",
    /* with streams and folders like these */
    "SLURM_LABELIO", "SLURM_STDINMODE", "SLURM_STDOUTMODE", "SLURM_STDERRMODE",
    "SLURM_UNBUFFEREDIO", "SLURM_EXPORT_ENV", "SLURM_MPI_TYPE", "SLURM_REMOTE_CWD",
    "SLURM_WORKING_DIR", "SLURM_PROLOG", "SLURM_EPILOG",
    /* of this machine */
    "TMPDIR", "XDG_RUNTIME_DIR", NULL};

static bool is_left_out(const char *pair)
{
    size_t length = strcspn(pair, "=");
    for (const char *const *at = left_out; *at != NULL; at++) {
        size_t known = strlen(*at);
        bool open = (*at)[known - 1] == '*';
        known -= open;
        if ((open ? length >= known : length == known) && strncmp(pair, *at, known) == 0)
            return true;
    }
    return false;
}

void srun_command_env(char *const *from, const struct srun_secrets *secrets, struct strv *env)
{
    AUTO_BUF struct buf dial = BUF_INIT(LIST_MAX);
    for (; *from != NULL; from++) {
        if (!is_left_out(*from))
            strv_add(env, *from);
    }
    for (char *const *at = secrets->addresses; *at != NULL; at++) {
        bool ipv6 = strchr(*at, ':') != NULL;
        buf_printf(&dial, "%s%s%s%s:%d", dial.length > 0 ? "," : "", ipv6 ? "[" : "", *at,
                   ipv6 ? "]" : "", secrets->port);
    }
    strv_printf(env, DIAL_BACK_ENV_DIAL "=%s", buf_text(&dial));
    strv_printf(env, DIAL_BACK_ENV_KEY "=%s", secrets->key);
    strv_printf(env, DIAL_BACK_ENV_JOB "=%s", secrets->job_id);
}

/* What a line is about. */

#define NODES_MAX ((size_t)100000)
#define ERROR_MARK "error: "
#define NODE_FAILURE "Node failure on "

static int add_node(void *context, const char *name, struct error *err)
{
    struct strv *nodes = context;
    (void)err;
    strv_add(nodes, name);
    return 0;
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

/* `text` is a list of nodes; commas inside of brackets are the range's. */
static bool add_nodes(const char *text, size_t length, struct strv *nodes)
{
    size_t budget = NODES_MAX, begin = 0;
    int depth = 0;
    for (size_t i = 0; i <= length; i++) {
        char byte = i < length ? text[i] : ',';
        if (is_blank(byte))
            return false;
        depth += (byte == '[') - (byte == ']');
        if (byte != ',' || (depth > 0 && i < length))
            continue;
        if (i == begin ||
            hostlist_expand(text + begin, i - begin, &budget, add_node, nodes, NULL) < 0)
            return false;
        begin = i + 1;
    }
    return true;
}

/* Up to the first colon; what is said follows it. */
static const char *before_colon(const char *text, struct strv *nodes)
{
    const char *colon = strchr(text, ':');
    if (colon == NULL || !add_nodes(text, (size_t)(colon - text), nodes))
        return NULL;
    return colon + 1 + strspn(colon + 1, " ");
}

const char *srun_complaint_about(const char *line, struct strv *nodes)
{
    static const char launch[] = "failed on node ";
    const size_t cannot = strlen(DIAL_BACK_CANNOT);
    if (strncmp(line, DIAL_BACK_CANNOT, cannot) == 0)
        return before_colon(line + cannot, nodes);
    const char *said = strstr(line, ERROR_MARK);
    if (strncmp(line, "srun:", 5) != 0 || said == NULL)
        return NULL;
    said += strlen(ERROR_MARK);
    if (srun_complaint_is_node_failure(said)) {
        const char *list = said + strlen(NODE_FAILURE);
        return add_nodes(list, strcspn(list, " "), nodes) ? said : NULL;
    }
    const char *where = strstr(said, launch);
    if (where != NULL)
        return before_colon(where + strlen(launch), nodes) != NULL ? said : NULL;
    const char *task = strstr(said, ": task");
    return task != NULL && strchr(said, ':') == task ? before_colon(said, nodes) : NULL;
}

bool srun_complaint_is_node_failure(const char *said)
{
    return strncmp(said, NODE_FAILURE, strlen(NODE_FAILURE)) == 0;
}

bool srun_complaint_is_end(const char *line)
{
    return strstr(line, "forcing job termination") != NULL ||
           strstr(line, "Job step aborted") != NULL || strstr(line, "CANCELLED AT") != NULL ||
           strstr(line, "has been revoked") != NULL;
}

/* The process. */

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
