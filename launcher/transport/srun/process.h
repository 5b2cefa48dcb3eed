/* SPDX-License-Identifier: Apache-2.0 */
/* What srun can do, the command of one, and what it says on stderr. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/strv.h"

/* The options that hvdrun gives to an srun that has them, in their order. */
#define SRUN_OPTION_LIST(X)                                                          \
    X(SRUN_NTASKS_PER_NODE, "ntasks-per-node", "--ntasks-per-node=1")                \
    X(SRUN_EXPORT, "export", "--export=ALL")                                         \
    X(SRUN_OVERLAP, "overlap", "--overlap")                                          \
    X(SRUN_KILL_ON_BAD_EXIT, "kill-on-bad-exit", "--kill-on-bad-exit=1")             \
    X(SRUN_NO_KILL, "no-kill", "--no-kill")                                          \
    X(SRUN_WAIT, "wait", "--wait=0")                                                 \
    X(SRUN_MPI, "mpi", "--mpi=none")                                                 \
    X(SRUN_CPU_BIND, "cpu-bind", "--cpu-bind=none")                                  \
    X(SRUN_CPU_BIND_OLD, "cpu_bind", "--cpu_bind=none") /* without the one before */ \
    X(SRUN_MEM, "mem", "--mem=0") /* all that the job has, counted for no step */    \
    X(SRUN_INPUT, "input", "--input=none")                                           \
    X(SRUN_CHDIR, "chdir", "--chdir=/") /* our folder need not be there */           \
    X(SRUN_JOB_NAME, "job-name", "--job-name=hvdrun-agent")

enum srun_option {
#define SRUN_OPTION_ENUM(id, name, word) id,
    SRUN_OPTION_LIST(SRUN_OPTION_ENUM)
#undef SRUN_OPTION_ENUM
        SRUN_OPTIONS
};

struct srun_options {
    bool has[SRUN_OPTIONS];
};

/* `text` as `srun --help` prints it; false: it is not srun's help (--nodelist is not in it), and
 * nothing is set. An option is there when "--NAME" is, as a whole word. */
bool srun_options_parse(const char *text, struct srun_options *options);

struct srun_command {
    const struct srun_options *options; /* of this srun */
    char *const *nodes;                 /* NULL-ended, at least one */
    const struct strv *arguments;       /* of the user, after ours; NULL: none */
    const char *agent_path;
};
void srun_command_argv(const struct srun_command *command, struct strv *argv);

/* What the agents need to know. It goes through the environment, never through argv (D9). */
struct srun_secrets {
    char *const *addresses; /* numeric, best first, NULL-ended */
    int port;
    const char *key;
    const char *job_id;
};

/* `from` without what would change the step, and what belongs to this machine (TMPDIR), with
 * HVDRUN_AGENT_*. */
void srun_command_env(char *const *from, const struct srun_secrets *secrets, struct strv *env);

/* What a line of srun, slurmstepd, or an agent that cannot dial back, is about. */

/* "srun: error: node[2-3]: tasks 1-2: Exited with exit code 2", "srun: error: Node failure on
 * node3", "... failed on node node3: ...", DIAL_BACK_CANNOT "node3: why": appends the nodes to
 * `nodes` and returns what is said about them, a part of `line`. NULL: it names none. */
const char *srun_complaint_about(const char *line, struct strv *nodes);

/* `said` means that Slurm has taken the node from the job. */
bool srun_complaint_is_node_failure(const char *said);

/* The agents of this step end on request: a cancelled step or job, a signal to srun. */
bool srun_complaint_is_end(const char *line);
