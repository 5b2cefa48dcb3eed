/* SPDX-License-Identifier: Apache-2.0 */
/* The process of one srun: what it can do, its command, what it says on stderr, and its end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "transport/dial_back.h"
#include "transport/transports.h"

#define SRUN_OPTION_LIST(X)                      \
    X(SRUN_EXPORT, "export")                     \
    X(SRUN_NTASKS_PER_NODE, "ntasks-per-node")   \
    X(SRUN_OVERLAP, "overlap")                   \
    X(SRUN_KILL_ON_BAD_EXIT, "kill-on-bad-exit") \
    X(SRUN_NO_KILL, "no-kill")                   \
    X(SRUN_WAIT, "wait")                         \
    X(SRUN_MPI, "mpi")                           \
    X(SRUN_CPU_BIND, "cpu-bind")                 \
    X(SRUN_CPU_BIND_OLD, "cpu_bind")             \
    X(SRUN_MEM, "mem")                           \
    X(SRUN_INPUT, "input")                       \
    X(SRUN_CHDIR, "chdir")                       \
    X(SRUN_JOB_NAME, "job-name")

enum srun_option {
#define SRUN_OPTION_ENUM(id, name) id,
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

struct srun_process_spec { /* borrowed for the call, but for the settings */
    const struct srun_settings *settings;
    const struct srun_options *options;
    const struct strv *arguments; /* of the user; NULL: none */
    const struct dial_back *dial; /* to which its agents connect */
    const struct strv *nodes;     /* where it starts agents */
};

struct srun_process_events { /* from the loop */
    void (*line)(void *context, const char *line);
    void (*silent)(void *context); /* its stderr has ended */
    void (*exited)(void *context, int wait_status);
};

struct srun_process;

/* NULL: it could not be started. */
struct srun_process *srun_process_start(const struct srun_process_spec *spec,
                                        const struct srun_process_events *events, void *context,
                                        struct error *err);
void srun_process_destroy(struct srun_process *process); /* lets it go; accepts NULL */

void srun_process_ask(struct srun_process *process);    /* SIGTERM */
void srun_process_let_go(struct srun_process *process); /* no event comes any more */

/* Closes its stderr. */
void srun_process_ignore(struct srun_process *process);
bool srun_process_is_silent(const struct srun_process *process); /* its stderr is closed */

/* The lines that it has said so far, and the last of them. "": none. */
const char *srun_process_said(const struct srun_process *process);
const char *srun_process_last_line(const struct srun_process *process);

/* "srun was killed by signal 9 (Killed)". The caller's. */
char *srun_process_end(const struct srun_process *process);

/* What a line of srun, slurmstepd, or an agent that cannot dial back, is about. */

/* "srun: error: node[2-3]: tasks 1-2: Exited with exit code 2", "srun: error: Node failure on
 * node3", "... failed on node node3: ...", DIAL_BACK_CANNOT "node3: why": appends the nodes to
 * `nodes` and returns what is said about them, a part of `line`. NULL: it names none. */
const char *srun_complaint_about(const char *line, struct strv *nodes);

/* `said` means that Slurm has taken the node from the job. */
bool srun_complaint_is_node_failure(const char *said);

/* The agents of this step end on request: a cancelled step or job, a signal to srun. */
bool srun_complaint_is_end(const char *line);
