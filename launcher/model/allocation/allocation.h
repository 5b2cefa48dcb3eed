/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allocation that a scheduler has given us: its own variables (and the file that some of them
 * name) in, hosts with slots out. Pure.
 *
 *   Slurm       SLURM_JOB_ID, SLURM_JOB_NODELIST with SLURM_TASKS_PER_NODE, ...
 *   PBS         PBS_JOBID, PBS_NODEFILE (a line for each slot)
 *   LSF         LSB_JOBID, LSB_DJOB_HOSTFILE (a line for each slot), LSB_MCPU_HOSTS, LSB_HOSTS
 *   SGE         JOB_ID, PE_HOSTFILE ("host slots queue range" a line)
 *   Kubernetes  OMPI_MCA_orte_default_hostfile or HYDRA_HOST_FILE and the like, as mpi-operator
 *               sets them for the launcher of an MPIJob ("host slots=N" or "host:N" a line)
 *
 * docs/slurm.md has the rules for slots.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/hosts/hosts.h"

enum allocation_kind {
    ALLOCATION_NONE,
    ALLOCATION_SLURM,
    ALLOCATION_PBS,
    ALLOCATION_LSF,
    ALLOCATION_SGE,
    ALLOCATION_KUBERNETES,
};

struct allocation {
    enum allocation_kind kind;
    char *job_id;           /* NULL: not said */
    char *here;             /* the scheduler's name of this machine (SLURMD_NODENAME); NULL: it is
                               not said, as on a login host */
    struct host_list hosts; /* in the scheduler's order */
    int np;                 /* tasks that were asked for; 0: not said */
    int restart_count; /* how often the scheduler has put the job back; 0: never, or not said */
    int64_t end_s;     /* when its time is over, seconds of the epoch; 0: not said */
};

const char *allocation_name(enum allocation_kind kind); /* "Slurm"; "none" */

/* What must be there for allocation_has(): "SLURM_JOB_ID and SLURM_JOB_NODELIST". */
const char *allocation_needs(enum allocation_kind kind);

/* Which one we are in, as far as `env` (NULL-ended "NAME=value") tells, and the file that must be
 * read for allocation_parse(): borrowed from `env`, NULL when none is needed. */
enum allocation_kind allocation_detect(char *const *env, const char **file);

/* The same question about one of them. */
bool allocation_has(enum allocation_kind kind, char *const *env, const char **file);

/* `bytes` are those of that file, NULL without one. Errors have STATUS_USAGE and name the variable,
 * or file and line. `out` is all zero, and destroyed by the caller in either case. */
int allocation_parse(enum allocation_kind kind, char *const *env, const char *file,
                     const char *bytes, size_t length, struct allocation *out, struct error *err);
void allocation_destroy(struct allocation *allocation); /* all zero afterwards */

/* The hosts that a user names must be among those of the allocation, with no more slots than it has
 * there (`oversubscribe`: as many as one likes). One that is named once, without a slot count, gets
 * the slots of the allocation. Slurm's names are compared as they are, those of others up to the
 * first dot where one of the two has none; localhost is `here`. -1 and STATUS_USAGE: which are not,
 * and what to do. */
int allocation_check(const struct allocation *allocation, struct host_list *hosts,
                     bool oversubscribe, struct error *err);

/* Slurm alone: we are one of several tasks of one step, so that as many launchers run, and which
 * one. -1: we are not. */
int allocation_twin(char *const *env);
