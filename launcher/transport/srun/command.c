/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/srun/command.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "io/dial_back_names.h"

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
