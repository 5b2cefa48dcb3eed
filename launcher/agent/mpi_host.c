/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/mpi_host.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "node/runtime_dir.h"

#define ENVIRONMENT_MAX ((size_t)16 << 20)

struct mpi_host {
    struct loop *loop;
    const struct post *post;  /* the agent's */
    struct pmix_server *pmix; /* the library in this process; NULL: it does not run */
    struct loop_fd *watch;    /* of the library */
    struct runtime_dir *dir;  /* for its files */
    char *problem;            /* why it could not be started, also later; NULL: nobody has tried */
    struct mpi_world *worlds;
    bool abandoned; /* nobody waits for PMIx any more */
};

/* Registers the job of an epoch with PMIx. */

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

/* The bindings of the workers as texts for PMIx; none, if no worker is bound. */
static void add_cpusets(const struct mpi_job *job, struct strv *out)
{
    const Hvdrun__Prepare *prepare = job->prepare;
    for (size_t i = 0; job->binding != NULL && i < prepare->n_workers; i++) {
        struct buf text = BUF_INIT(65536);
        cpu_mask_list(&job->binding->ranks[prepare->workers[i]->slot], &text);
        strv_add_take(out, buf_take(&text));
    }
}

/* As PREPARE describes it. */
static int register_job(struct pmix_server *pmix, const struct mpi_job *from, const char *nspace,
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
    AUTO_STRV struct strv cpusets = STRV_INIT;
    add_cpusets(from, &cpusets);
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
        .cpusets = (const char *const *)cpusets.items};
    int result = pmix_server_job(pmix, &job, err);
    for (size_t i = 0; i < prepare->n_apps; i++)
        strv_destroy(&argvs[i]);
    return result;
}

/* What PMIx asks for. */

/* The world of a rank that has this number; NULL: it is not known here. */
static struct mpi_world *world_with(const struct mpi_host *host, int number)
{
    struct mpi_world *world = host->worlds;
    while (world != NULL && (world->pmix == NULL || number < mpi_world_first(world) ||
                             number - mpi_world_first(world) >= (int)world->job.prepare->size))
        world = world->next;
    return world;
}

/* All nodes know the first world, which is the last in the list. */
static const struct mpi_world *oldest(const struct mpi_host *host)
{
    const struct mpi_world *world = host->worlds;
    while (world != NULL && world->next != NULL)
        world = world->next;
    return world;
}

static void pmix_aborted(void *context, int number, int status, const char *message, bool whole_job)
{
    (void)whole_job; /* a rank that ends itself by PMIx_Abort has failed, and so has the job */
    struct mpi_world *world = world_with(context, number);
    if (world == NULL)
        return;
    mpi_world_flush(world, number - mpi_world_first(world));
    mpi_world_abort(world, number - mpi_world_first(world), status, message);
}

static void pmix_log(void *context, enum log_level level, const char *line)
{
    const struct mpi_host *host = context;
    log_print(&host->post->log, level, "%s", line);
}

static void pmix_signal(void *context, int number, int signal)
{
    const struct mpi_host *host = context;
    for (const struct mpi_world *world = host->worlds; world != NULL; world = world->next) {
        bool every = number == PMIX_EVERY_RANK;
        int rank = every ? number : number - mpi_world_first(world);
        bool here = mpi_world_index(world, rank) >= 0;
        if (!every && world != world_with(host, number))
            continue;
        if (!here && !is_alone(&world->job))
            mpi_relay_signal(world->job.post, number, signal);
        if (here || every)
            world->job.ops->signal(world->job.context, rank, signal);
    }
}

static void pmix_collect(void *context, uint64_t id, const char *operation, const int *ranks,
                         size_t count, const void *bytes, size_t length)
{
    const struct mpi_host *host = context;
    const struct mpi_world *world = world_with(host, ranks[0]);
    if (world != NULL &&
        mpi_relay_collect(world->job.post, id, operation, ranks, count, bytes, length) == 0)
        return;
    mpi_too_large(&host->post->log, length);
    host->pmix->module->collect_reply(host->pmix->inner, id, false, 0, NULL, 0);
}

static void pmix_modex(void *context, uint64_t id, int number)
{
    const struct mpi_host *host = context;
    const struct mpi_world *world = world_with(host, number);
    if (world != NULL)
        mpi_relay_modex(world->job.post, id, number);
    else
        host->pmix->module->modex_reply(host->pmix->inner, id, false, NULL, 0);
}

static void pmix_modex_answer(void *context, struct pmix_asker asker, bool ok, const void *bytes,
                              size_t length)
{
    const struct mpi_world *world = oldest(context);
    if (world != NULL)
        mpi_relay_modex_data(world->job.post, asker, ok, bytes, length);
}

static void pmix_store(void *context, uint64_t id, const struct pmix_store_request *request)
{
    struct mpi_host *host = context;
    struct mpi_world *world = host->worlds;
    while (world != NULL &&
           (world->nspace == NULL || strcmp(world->nspace, request->owner.nspace) != 0))
        world = world->next;
    if (world != NULL)
        world->published = true;
    if (world == NULL || mpi_relay_store(world->job.post, id, request) < 0)
        host->pmix->module->store_reply(host->pmix->inner, id, STORE_FULL, NULL, 0);
}

static void pmix_event(void *context, const void *bytes, size_t length)
{
    const struct mpi_world *world = oldest(context);
    if (world != NULL)
        mpi_relay_event(world->job.post, bytes, length);
}

static void relay_spawn(const struct mpi_world *world, uint64_t id,
                        const struct pmix_spawn *request)
{
    AUTO_BUF struct buf given = BUF_INIT(ENVIRONMENT_MAX);
    mpi_world_given(world, request->rank - mpi_world_first(world), &given);
    if (mpi_relay_spawn(world->job.post, id, request, &given) == 0)
        return;
    log_warning(&world->job.post->log,
                "a rank asks for others with more than %zu MiB of arguments and variables",
                FRAME_MPI_DATA_MAX >> 20);
    world->pmix->module->spawn_reply(world->pmix->inner, id, PMIX_SPAWN_FAILED, NULL);
}

static void pmix_spawn(void *context, uint64_t id, const struct pmix_spawn *request)
{
    struct mpi_host *host = context;
    struct mpi_world *world = world_with(host, request->rank);
    if (world == NULL)
        host->pmix->module->spawn_reply(host->pmix->inner, id, PMIX_SPAWN_FAILED, NULL);
    else if (world->job.prepare->elastic)
        mpi_world_refuse_spawn(world, request->rank - mpi_world_first(world));
    else
        relay_spawn(world, id, request);
}

static void ready(void *context, int what)
{
    (void)what;
    const struct mpi_host *host = context;
    host->pmix->module->dispatch(host->pmix->inner);
}

/* Loads the module and starts the library, if there is room for its files. */
static struct pmix_server *open_server(struct mpi_host *host, const char *module_path,
                                       const char *hostname, struct error *err)
{
    static const struct pmix_server_ops ops = {.aborted = pmix_aborted,
                                               .log = pmix_log,
                                               .signal = pmix_signal,
                                               .collect = pmix_collect,
                                               .modex = pmix_modex,
                                               .modex_answer = pmix_modex_answer,
                                               .store = pmix_store,
                                               .event = pmix_event,
                                               .spawn = pmix_spawn};
    host->dir = runtime_dir_create(err);
    struct pmix_server *server =
        host->dir == NULL ? NULL : pmix_server_load(module_path, &ops, host, err);
    if (server == NULL)
        return NULL;
    if (runtime_dir_room(host->dir, server->module->space(), "PMIx", err) == 0 &&
        pmix_server_start(server, runtime_dir_path(host->dir), hostname, err) == 0)
        return server;
    pmix_server_stop(server);
    return NULL;
}

/* Starts the library, if it does not run yet. */
static int need_pmix(struct mpi_host *host, const char *module_path, const char *hostname,
                     struct error *err)
{
    if (host->pmix != NULL)
        return 0;
    if (host->problem != NULL)
        return error_set(err, "%s", host->problem);
    host->pmix = open_server(host, module_path, hostname, err);
    if (host->pmix == NULL) {
        host->problem = mem_strdup(err->text);
        return -1;
    }
    host->watch =
        loop_fd_create(host->loop, host->pmix->module->fd(host->pmix->inner), ready, host);
    loop_fd_watch(host->watch, LOOP_READ);
    return 0;
}

struct mpi_host *mpi_host_create(struct loop *loop, const struct post *post)
{
    return MEM_NEW((struct mpi_host){.loop = loop, .post = post});
}

void mpi_host_destroy(struct mpi_host *host)
{
    if (host == NULL)
        return;
    loop_fd_destroy(host->watch);
    pmix_server_leave(host->pmix);
    runtime_dir_destroy(host->dir);
    free(host->problem);
    free(host);
}

void mpi_host_abandon(struct mpi_host *host)
{
    if (host != NULL)
        host->abandoned = true;
}

bool mpi_host_has_thread(const struct mpi_host *host)
{
    return host != NULL && host->pmix != NULL;
}

int mpi_host_try_pmix(struct mpi_host *host, const char *module_path, const char *hostname,
                      struct error *err)
{
    const int rank = 0;
    char *argv[] = {NULL};
    struct pmix_job_node node = {hostname, &rank, 1};
    struct pmix_job_app app = {.argv = argv, .np = 1};
    struct pmix_job job = {.nspace = "hvdrun-check",
                           .size = 1,
                           .nodes = &node,
                           .node_count = 1,
                           .apps = &app,
                           .app_count = 1,
                           .uid = getuid(),
                           .gid = getgid(),
                           .wdir = "/"};
    if (need_pmix(host, module_path, hostname, err) < 0 ||
        pmix_server_job(host->pmix, &job, err) < 0)
        return -1;
    host->pmix->module->job_end(host->pmix->inner, 0);
    return 0;
}

static bool wants(const struct mpi_job *job, enum mpi_kind kind)
{
    for (size_t i = 0; i < job->prepare->n_apps; i++) {
        if (job->kinds[i] == kind)
            return true;
    }
    return false;
}

/* What the servers index their tables with: all ranks of the node start here and now. */
static int check_workers(const struct mpi_job *job, struct error *err)
{
    const Hvdrun__Prepare *prepare = job->prepare;
    const int *ranks = rank_places_of(job->places, job->places->here);
    size_t count = (size_t)rank_places_count(job->places, job->places->here), i = 0;
    while (i < count && i < prepare->n_workers && prepare->workers[i]->rank == (uint32_t)ranks[i])
        i++;
    if (i != count || i != prepare->n_workers)
        return error_set(err, "the ranks of the plan and of the workers on this node differ");
    return 0;
}

static int register_world(struct mpi_world *world, struct error *err)
{
    const struct mpi_job *job = &world->job;
    const char *name = name_of(job, is_alone(job) ? 0 : job->prepare->node_index);
    if (need_pmix(world->host, job->module_path, name, err) < 0)
        return -1;
    world->nspace = mem_printf(PMIX_NSPACE_FORMAT, job->job_id, job->post->epoch);
    if (register_job(world->host->pmix, job, world->nspace, err) < 0)
        return -1;
    world->pmix = world->host->pmix;
    return 0;
}

static int open_servers(struct mpi_world *world, struct error *err)
{
    const struct mpi_job *job = &world->job;
    bool pmix = wants(job, MPI_PMIX), pmi1 = wants(job, MPI_PMI1);
    if (check_workers(job, err) < 0 || (pmix && register_world(world, err) < 0))
        return -1;
    if (pmi1)
        mpi_world_open_pmi1(world);
    /* Workers that may rejoin others have no MPI, whatever their libraries map. */
    if (!job->prepare->elastic || pmix || pmi1)
        mpi_world_look(world);
    return 0;
}

struct mpi_world *mpi_world_create(struct mpi_host *host, const struct mpi_job *job,
                                   struct error *err)
{
    struct mpi_world *world = MEM_NEW(
        (struct mpi_world){.next = host->worlds, .host = host, .loop = host->loop, .job = *job});
    mpi_world_open(world);
    host->worlds = world;
    if (open_servers(world, err) == 0)
        return world;
    mpi_world_destroy(world);
    return NULL;
}

void mpi_world_destroy(struct mpi_world *world)
{
    if (world == NULL)
        return;
    struct mpi_world **at = &world->host->worlds;
    while (*at != world)
        at = &(*at)->next;
    *at = world->next;
    if (world->pmix != NULL && !world->host->abandoned)
        world->pmix->module->job_end(world->pmix->inner, mpi_world_first(world));
    mpi_world_close(world);
}
