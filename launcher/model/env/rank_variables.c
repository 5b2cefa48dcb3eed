/* SPDX-License-Identifier: Apache-2.0 */
#include "model/env/rank_variables.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

const struct rank_variable rank_variables[] = {
#define WORKER_VAR(name, value, when) {name, value, when},
#include "model/env/worker_vars.def"
#undef WORKER_VAR
};

const struct rank_variable *rank_variable_find(const char *name, size_t length)
{
    for (size_t i = 0; i < RANK_VARIABLES; i++) {
        const char *known = rank_variables[i].name;
        if (known[0] == name[0] && strncmp(known, name, length) == 0 && known[length] == '\0')
            return &rank_variables[i];
    }
    return NULL;
}

bool rank_variable_is_firm(const char *name, size_t length)
{
    const struct rank_variable *variable = rank_variable_find(name, length);
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

enum form { BEGINS, HAS, IS };

static bool name_fits(const char *name, enum form form, const char *text)
{
    switch (form) {
    case BEGINS: return text_begins(name, text);
    case HAS: return strstr(name, text) != NULL;
    case IS: break;
    }
    return strcmp(name, text) == 0;
}

/* It is asked for each variable of each warm rank. */
bool env_differs_by_rank(const char *name)
{
    static const struct {
        enum form form;
        const char *text;
    } names[] = {
        {BEGINS, "HVDRUN_"},
        {BEGINS, "PMI"},
        {BEGINS, "OMPI_"},
        {BEGINS, "SLURM"},
        {BEGINS, "MPI_"},
        {BEGINS, "JSM_"},
        {HAS, "RANK"},
        {HAS, "HOSTNAME"},
        /* what hvdrun sets for each rank or host */
        {IS, "HOROVOD_GLOO_RENDEZVOUS_PORT"},
        {IS, "JAX_PROCESS_ID"},
        {IS, "KUBEFLOW_TRAINER_SERVER_TOKEN"},
        {IS, "KUBEFLOW_TRAINER_SERVER_URL"},
        {IS, "NCCL_RAS_ADDR"},
        {IS, "TORCHELASTIC_ERROR_FILE"},
        {IS, "TORCH_FR_DUMP_TEMP_FILE"},
        {IS, "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"},
    };
    size_t i = 0;
    while (i < sizeof(names) / sizeof(names[0]) && !name_fits(name, names[i].form, names[i].text))
        i++;
    return i < sizeof(names) / sizeof(names[0]);
}

static bool differs(const struct env_of_host *hosts, size_t count, const char *name)
{
    const char *first = strv_env_get(hosts[0].env, name);
    for (size_t i = 1; i < count; i++) {
        if (!text_same(first, strv_env_get(hosts[i].env, name)))
            return true;
    }
    return false;
}

/* An earlier host has it too, so it was compared already. */
static bool is_seen(const struct env_of_host *hosts, size_t before, const char *name)
{
    for (size_t i = 0; i < before; i++) {
        if (strv_env_get(hosts[i].env, name) != NULL)
            return true;
    }
    return false;
}

void env_differ(const struct env_of_host *hosts, size_t count,
                void (*each)(void *context, const char *name, const char *host, const char *value),
                void *context)
{
    int found = 0;
    for (size_t h = 0; h < count; h++) {
        for (size_t i = 0; i < hosts[h].env->count && found < ENV_DIFFER_MAX; i++) {
            const char *pair = hosts[h].env->items[i];
            char *name AUTO_FREE = mem_strndup(pair, strcspn(pair, "="));
            if (env_differs_by_rank(name) || is_seen(hosts, h, name) ||
                !differs(hosts, count, name))
                continue;
            found++;
            for (size_t j = 0; j < count; j++)
                each(context, name, hosts[j].host, strv_env_get(hosts[j].env, name));
        }
    }
}
