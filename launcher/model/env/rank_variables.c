/* SPDX-License-Identifier: Apache-2.0 */
#include "model/env/rank_variables.h"

#include <string.h>

const struct rank_variable rank_variables[] = {
#define WORKER_VAR(name, value, when) {name, value, when},
#include "model/env/worker_vars.def"
#undef WORKER_VAR
};

const char *rank_variable_name(size_t i, bool *inherited)
{
    if (i >= RANK_VARIABLES)
        return NULL;
    if (inherited != NULL)
        *inherited = rank_variables[i].when == INHERITED;
    return rank_variables[i].name;
}

static const struct rank_variable *find(const char *name, size_t length)
{
    for (size_t i = 0; i < RANK_VARIABLES; i++) {
        const char *known = rank_variables[i].name;
        if (known[0] == name[0] && strncmp(known, name, length) == 0 && known[length] == '\0')
            return &rank_variables[i];
    }
    return NULL;
}

bool rank_variable_is(const char *name, size_t length, bool *inherited)
{
    const struct rank_variable *variable = find(name, length);
    if (variable != NULL && inherited != NULL)
        *inherited = variable->when == INHERITED;
    return variable != NULL;
}

bool rank_variable_is_firm(const char *name, size_t length)
{
    const struct rank_variable *variable = find(name, length);
    return variable != NULL && variable->when != YIELDS;
}

bool rank_variable_applies(const struct rank_variable *variable, enum mpi_kind mpi)
{
    switch (variable->when) {
    case PMIX: return mpi == MPI_PMIX;
    case PMI1: return mpi == MPI_PMI1;
    case ALWAYS:
    case YIELDS:
    case INHERITED: break;
    }
    return true;
}
