/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/mpi_pmix.h"

#include <stdlib.h>
#include <unistd.h>

#include "agent/mpi_job.h"
#include "base/mem.h"
#include "base/strv.h"
#include "node/runtime_dir.h"
#include "pmix/pmix_server.h"

/* Registers the job of an epoch with PMIx, as PREPARE describes it. */

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
    char *parent AUTO_FREE =
        prepare->parent_epoch == 0
            ? NULL
            : mem_printf(PMIX_NSPACE_FORMAT, from->job_id, prepare->parent_epoch);
    struct pmix_job job = {
        .nspace = nspace,
        .size = (int)prepare->size,
        .universe_size = (int)(prepare->universe_size > prepare->size ? prepare->universe_size : 0),
        .first = (int)prepare->first_seat,
        .parent_nspace = parent,
        .parent_rank = (int)prepare->parent_rank,
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

static void ready(void *context, int what)
{
    (void)what;
    const struct mpi_pmix *pmix = context;
    pmix_server_dispatch(pmix->server);
}

/* Loads the module and starts the library, if there is room for its files. */
static struct pmix_server *open_server(struct mpi_pmix *pmix, const struct mpi_pmix_start *start,
                                       struct error *err)
{
    pmix->dir = runtime_dir_create(err);
    struct pmix_server *server =
        pmix->dir == NULL ? NULL
                          : pmix_server_load(start->module_path, start->ops, start->context, err);
    if (server == NULL)
        return NULL;
    if (runtime_dir_room(pmix->dir, pmix_server_space(server), "PMIx", err) == 0 &&
        pmix_server_start(server, runtime_dir_path(pmix->dir), start->hostname, err) == 0)
        return server;
    pmix_server_stop(server);
    return NULL;
}

int mpi_pmix_need(struct mpi_pmix *pmix, struct loop *loop, const struct mpi_pmix_start *start,
                  struct error *err)
{
    if (pmix->server != NULL)
        return 0;
    if (pmix->problem != NULL)
        return error_set(err, "%s", pmix->problem);
    pmix->server = open_server(pmix, start, err);
    if (pmix->server == NULL) {
        pmix->problem = mem_strdup(err->text);
        return -1;
    }
    pmix->watch = loop_fd_create(loop, pmix_server_fd(pmix->server), ready, pmix);
    loop_fd_watch(pmix->watch, LOOP_READ);
    return 0;
}

void mpi_pmix_leave(struct mpi_pmix *pmix)
{
    loop_fd_destroy(pmix->watch);
    pmix_server_leave(pmix->server);
    runtime_dir_destroy(pmix->dir);
    free(pmix->problem);
}
