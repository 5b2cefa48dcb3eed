/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the srun of this site can do: its --help in, a set of options out. Versions and sites (their
 * plug-ins) differ, so a version number would tell nothing. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

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
