/* SPDX-License-Identifier: Apache-2.0 */
/* In which variables the environments of the hosts of a job differ. Pure. */
#pragma once

#include <stdbool.h>

#include "base/strv.h"

#define ENV_DIFFER_MAX 100 /* variables */

struct env_of_host {
    const char *host;
    const struct strv *env; /* "NAME=VALUE" */
};

/* Finds the variables that do not have the same value on all hosts, at most ENV_DIFFER_MAX. Calls
 * `each` for each host, variable by variable, in the order of the first host that has it. `value`
 * is NULL where it is unset. Variables that must differ from rank to rank do not count: names of
 * ranks and hosts, and those of hvdrun, MPI and Slurm. */
void env_differ(const struct env_of_host *hosts, size_t count,
                void (*each)(void *context, const char *name, const char *host, const char *value),
                void *context);

/* Such a variable must differ from rank to rank. */
bool env_differs_by_rank(const char *name);
