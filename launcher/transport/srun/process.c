/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/srun/process.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "io/dial_ends.h"
#include "model/hosts/hostlist_range.h"

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
#define SRUN_OPTION_NAME(id, name, word) [id] = (name),
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

void srun_command_argv(const struct srun_command *command, struct strv *argv)
{
    static const char *const words[] = {
#define SRUN_OPTION_WORD(id, name, word) [id] = (word),
        SRUN_OPTION_LIST(SRUN_OPTION_WORD)
#undef SRUN_OPTION_WORD
    };
    const bool *has = command->options->has;
    size_t count = 0;
    while (command->nodes[count] != NULL)
        count++;
    char *nodes AUTO_FREE = strv_join(command->nodes, count, ",");
    strv_add(argv, "srun");
    strv_printf(argv, "-N%zu", count);
    strv_printf(argv, "-n%zu", count);
    strv_add(argv, "-w");
    strv_add(argv, nodes);
    for (size_t i = 0; i < SRUN_OPTIONS; i++) {
        if (has[i] && (i != SRUN_CPU_BIND_OLD || !has[SRUN_CPU_BIND]))
            strv_add(argv, words[i]);
    }
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

/* `text` is a list of nodes; commas inside of brackets are the range's. */
static bool add_nodes(const char *text, size_t length, struct strv *nodes)
{
    size_t budget = NODES_MAX, begin = 0;
    int depth = 0;
    for (size_t i = 0; i <= length; i++) {
        char byte = i < length ? text[i] : ',';
        if (byte == ' ' || byte == '\t')
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
