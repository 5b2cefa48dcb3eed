/* SPDX-License-Identifier: Apache-2.0 */
/* PBS Pro, OpenPBS and Torque: a file with a host name for each slot (mpiprocs, or ppn). */
#include "model/allocation/pbs.h"

#include <string.h>

#include "base/mem.h"

bool allocation_pbs_has(char *const *env, const char **file)
{
    *file = allocation_value(env, "PBS_NODEFILE");
    return *file != NULL && allocation_value(env, "PBS_JOBID") != NULL;
}

static int add_slot(void *context, const char *line, size_t length, struct error *err)
{
    return allocation_add(context, line, length, 1, err);
}

int allocation_pbs_parse(const struct allocation_source *source, struct allocation *out,
                         struct error *err)
{
    out->job_id = mem_strdup(allocation_value(source->env, "PBS_JOBID"));
    return allocation_lines(source, add_slot, out, err);
}
