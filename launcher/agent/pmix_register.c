/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pmix_register.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/strv.h"

static bool is_alone(const struct mpi_job *job)
{
    return job->prepare->n_host_ranks <= 1;
}

/* What MPI knows a node by: over several nodes the driver says, since each must have its own. */
static const char *name_of(const struct mpi_job *job, size_t node)
{
    const Hvdrun__Prepare *prepare = job->prepare;
    if (is_alone(job))
        return job->hostname;
    return node < prepare->n_hostnames ? prepare->hostnames[node] : prepare->hosts[node];
}

const char *pmix_register_name(const struct mpi_job *job)
{
    return name_of(job, is_alone(job) ? 0 : job->prepare->node_index);
}

/* The bindings of the workers as texts for PMIx; NULL when no worker is bound. The caller frees
 * both levels. */
static char **binding_texts(const struct mpi_job *job)
{
    const struct binding *binding = job->binding;
    const Hvdrun__Prepare *prepare = job->prepare;
    if (binding == NULL)
        return NULL;
    char **texts = mem_array(prepare->n_workers + 1, sizeof(*texts));
    for (size_t i = 0; i < prepare->n_workers; i++) {
        struct buf text = BUF_INIT(65536);
        cpu_mask_list(&binding->ranks[prepare->workers[i]->slot], &text);
        texts[i] = buf_take(&text);
    }
    return texts;
}

static void free_texts(char **texts)
{
    for (char **text = texts; text != NULL && *text != NULL; text++)
        free(*text);
    free(texts);
}

int pmix_register(struct pmix_server *pmix, const struct mpi_job *from, const char *nspace,
                  struct error *err)
{
    const Hvdrun__Prepare *prepare = from->prepare;
    struct pmix_job_app *apps AUTO_FREE = mem_array(prepare->n_apps, sizeof(*apps));
    struct strv *argvs AUTO_FREE = mem_array(prepare->n_apps, sizeof(*argvs)); /* NULL-ended */
    int first = 0;
    for (size_t i = 0; i < prepare->n_apps; i++) {
        const Hvdrun__App *app = prepare->apps[i];
        for (size_t j = 0; j < app->n_argv; j++)
            strv_add(&argvs[i], app->argv[j]);
        apps[i] = (struct pmix_job_app){.argv = strv_items(&argvs[i]),
                                        .wdir = app->wdir[0] == '\0' ? NULL : app->wdir,
                                        .np = from->app_np[i],
                                        .first_rank = first};
        first += from->app_np[i];
    }
    struct pmix_job_node *nodes AUTO_FREE = mem_array(prepare->n_host_ranks, sizeof(*nodes));
    for (size_t i = 0; i < prepare->n_host_ranks; i++)
        nodes[i] = (struct pmix_job_node){name_of(from, i), rank_places_of(from->places, (int)i),
                                          rank_places_count(from->places, (int)i)};
    char *wdir AUTO_FREE = getcwd(NULL, 0);
    char **cpusets = binding_texts(from);
    struct pmix_job job = {.nspace = nspace,
                           .size = (int)prepare->size,
                           .nodes = nodes,
                           .node_count = (int)prepare->n_host_ranks,
                           .my_node = (int)prepare->node_index,
                           .apps = apps,
                           .app_count = (int)prepare->n_apps,
                           .uid = getuid(),
                           .gid = getgid(),
                           .wdir = prepare->wdir[0] == '\0' ? wdir : prepare->wdir,
                           .shm_dir = from->shm_dir,
                           .oversubscribed = from->oversubscribed,
                           .cpusets = (const char *const *)cpusets};
    int result = pmix_server_job(pmix, &job, err);
    free_texts(cpusets);
    for (size_t i = 0; i < prepare->n_apps; i++)
        strv_destroy(&argvs[i]);
    return result;
}
