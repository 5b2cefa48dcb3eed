/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allocation that a scheduler has given us. Its variables, and the file that some of them name,
 * go in; hosts with slots come out. Pure.
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

#include "base/error.h"
#include "model/allocation/source.h"
#include "model/hosts/hosts.h"

const char *allocation_name(enum allocation_kind kind); /* "Slurm"; "none" */

/* What allocation_has() looks for: "SLURM_JOB_ID and SLURM_JOB_NODELIST". */
const char *allocation_needs(enum allocation_kind kind);

/* The scheduler whose variables are in `env` (NULL-ended "NAME=value"). `*file` becomes the file
 * that allocation_parse() needs: borrowed from `env`, NULL when it needs none. */
enum allocation_kind allocation_detect(char *const *env, const char **file);

/* The same question about one scheduler. */
bool allocation_has(enum allocation_kind kind, char *const *env, const char **file);

/* `bytes` are those of that file, NULL without one. Errors have STATUS_USAGE and name the variable,
 * or file and line. `out` is all zero, and destroyed by the caller in either case. */
int allocation_parse(enum allocation_kind kind, char *const *env, const char *file,
                     const char *bytes, size_t length, struct allocation *out, struct error *err);
void allocation_destroy(struct allocation *allocation); /* all zero afterwards */

/* The hosts that a user names must be among those of the allocation, with no more slots than it has
 * there (`oversubscribe`: any number). One that is named once, without a slot count, gets the slots
 * of the allocation. Slurm's names must be equal. Of other schedulers, names are compared up to the
 * first dot if one of the two has none. The name localhost is `here`. -1 and STATUS_USAGE: which
 * hosts are wrong, and what to do. */
int allocation_check(const struct allocation *allocation, struct host_list *hosts,
                     bool oversubscribe, struct error *err);
