/* SPDX-License-Identifier: Apache-2.0 */
/* In which variables the environments of the hosts of a job differ. Pure. */
#pragma once

#include "base/strv.h"

#define ENV_DIFFER_MAX 100 /* variables */

struct env_of_host {
    const char *host;
    const struct strv *env; /* "NAME=VALUE" */
};

/* Calls `each` for each host and each variable that has not the same value on all hosts, variable
 * by variable, in the order of the first host that has it. `value` is NULL where it is unset. What
 * must differ from rank to rank is left out: names of ranks and hosts, and hvdrun's, MPI's and
 * Slurm's own. At most ENV_DIFFER_MAX variables. */
void env_differ(const struct env_of_host *hosts, size_t count,
                void (*each)(void *context, const char *name, const char *host, const char *value),
                void *context);
