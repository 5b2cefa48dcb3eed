/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/mpi_host.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/mpi_look.h"
#include "agent/mpi_pmix.h"
#include "agent/mpi_relay.h"
#include "agent/pmi1_wire.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "node/descendants.h"
#include "node/mpi_detect.h"
#include "pmi1/request.h"
#include "stacks/printed.h"

#define ENVIRONMENT_MAX ((size_t)16 << 20)

struct mpi_world {
    struct mpi_world *next;
    struct mpi_host *host;
    const struct post *post; /* of its epoch */
    struct mpi_job job;
    struct pmi1_wire *pmi1;
    char *nspace;
    struct mpi_look *look;
    bool registered; /* its namespace is known to PMIx */
    bool published;  /* the store of all nodes has heard of this one */
};

/* What all worlds of the node share. */
struct mpi_host {
    struct loop *loop;
    const struct post *post; /* the agent's */
    struct mpi_pmix pmix;
    struct mpi_world *worlds;
    bool abandoned; /* nobody waits for PMIx any more */
};

static int first_of(const struct mpi_world *world)
{
    return (int)world->job.prepare->first_seat;
}

/* The number by which the PMIx server knows a worker: that of an MPI rank is its seat. */
static int number_of(const struct mpi_world *world, int index)
{
    return first_of(world) + (int)world->job.prepare->workers[index]->rank;
}

/* The world of a rank that has this number; NULL: it is not known here. */
static struct mpi_world *world_with(const struct mpi_host *host, int number)
{
    struct mpi_world *world = host->worlds;
    while (world != NULL && (!world->registered || number < first_of(world) ||
                             number - first_of(world) >= (int)world->job.prepare->size))
        world = world->next;
    return world;
}

static enum mpi_kind kind_of(const struct mpi_world *world, int index)
{
    return world->job.kinds[world->job.prepare->workers[index]->app];
}

/* The index of a rank of this node in PREPARE, which is its local rank; -1: it is not here. */
static int index_of(const struct mpi_world *world, int rank)
{
    const struct rank_places *places = world->job.places;
    int low = 0, high = rank_places_count(places, places->here);
    const int *ranks = rank_places_of(places, places->here);
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (ranks[middle] == rank)
            return middle;
        if (ranks[middle] < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

/* As the driver knows a rank of this node. */
static uint32_t seat_of(const struct mpi_world *world, int rank)
{
    int index = index_of(world, rank);
    return index >= 0 ? world->job.prepare->workers[index]->seat : (uint32_t)rank;
}

static void post_abort(struct mpi_world *world, int rank, int status, const char *text)
{
    Hvdrun__Abort message = HVDRUN__ABORT__INIT;
    message.seat = seat_of(world, rank);
    message.status = status;
    message.text = (char *)(text == NULL ? "" : text); /* protobuf-c only reads it */
    message.when_ns = (uint64_t)clock_mono_ns();
    post_message(world->post, FRAME_ABORT, &message.base);
}

/* The ranks of an elastic job could only wait for each other. */
static void refuse_spawn(const struct mpi_world *world, int rank)
{
    Hvdrun__Abort message = HVDRUN__ABORT__INIT;
    message.seat = seat_of(world, rank);
    message.spawn = true;
    message.when_ns = (uint64_t)clock_mono_ns();
    post_message(world->post, FRAME_ABORT, &message.base);
}

/* Open MPI ends the process with _exit() after we answer: what it has printed before would be
 * lost. Until then it waits for the answer. */
static void flush_printed(const struct mpi_world *world, int rank)
{
    int index = index_of(world, rank);
    pid_t pid = index >= 0 ? world->job.ops->pid(world->job.context, index) : 0,
          *below AUTO_FREE = NULL;
    size_t count = pid > 0 ? descendants_list(pid, &below) : 0;
    pid_t found = 0;
    for (size_t i = 0; pid > 0 && i <= count; i++) {
        pid_t one = i == 0 ? pid : below[i - 1];
        struct mpi_finding finding;
        mpi_detect_process(one, &finding);
        if (finding.kind != MPI_PMIX || mpi_process_launched_by_other(one, MPI_PMIX, world->nspace))
            continue;
        if (found != 0)
            return; /* which of them waits for the answer is unknown, and others may print */
        found = one;
    }
    if (found == 0)
        return;
    world->job.ops->read(world->job.context, index);
    printed_flush(found);
}

static void pmix_aborted(void *context, int number, int status, const char *message, bool whole_job)
{
    (void)whole_job; /* a rank that ends itself by PMIx_Abort has failed, and so has the job */
    struct mpi_world *world = world_with(context, number);
    if (world == NULL)
        return;
    flush_printed(world, number - first_of(world));
    post_abort(world, number - first_of(world), status, message);
}

static void pmix_log(void *context, enum log_level level, const char *line)
{
    const struct mpi_host *host = context;
    log_print(&host->post->log, level, "%s", line);
}

static bool is_alone(const struct mpi_world *world)
{
    return world->job.prepare->n_host_ranks <= 1;
}

static void signal_here(const struct mpi_world *world, int rank, int signal)
{
    world->job.ops->signal(world->job.context, rank, signal);
}

static void pmix_signal(void *context, int number, int signal)
{
    const struct mpi_host *host = context;
    for (const struct mpi_world *world = host->worlds; world != NULL; world = world->next) {
        bool every = number == PMIX_EVERY_RANK;
        int rank = every ? number : number - first_of(world);
        bool here = index_of(world, rank) >= 0;
        if (!every && world != world_with(host, number))
            continue;
        if (!here && !is_alone(world))
            mpi_relay_signal(world->post, number, signal);
        if (here || every)
            signal_here(world, rank, signal);
    }
}

static void too_large(const struct mpi_host *host, size_t length)
{
    log_error(&host->post->log,
              "the MPI ranks have %zu MiB for other nodes in one step, but the limit is %zu MiB",
              length >> 20, FRAME_MPI_DATA_MAX >> 20);
}

static void pmix_collect(void *context, uint64_t id, const char *operation, const int *ranks,
                         size_t count, const void *bytes, size_t length)
{
    const struct mpi_host *host = context;
    const struct mpi_world *world = world_with(host, ranks[0]);
    if (world != NULL &&
        mpi_relay_collect(world->post, id, operation, ranks, count, bytes, length) == 0)
        return;
    too_large(host, length);
    pmix_server_collect_reply(host->pmix.server, id, false, 0, NULL, 0);
}

static void pmix_modex(void *context, uint64_t id, int number)
{
    const struct mpi_host *host = context;
    const struct mpi_world *world = world_with(host, number);
    if (world != NULL)
        mpi_relay_modex(world->post, id, number);
    else
        pmix_server_modex_reply(host->pmix.server, id, false, NULL, 0);
}

/* All nodes know the first world, which is the last in the list. */
static const struct mpi_world *oldest(const struct mpi_host *host)
{
    const struct mpi_world *world = host->worlds;
    while (world != NULL && world->next != NULL)
        world = world->next;
    return world;
}

static void pmix_modex_answer(void *context, struct pmix_asker asker, bool ok, const void *bytes,
                              size_t length)
{
    const struct mpi_world *world = oldest(context);
    if (world != NULL)
        mpi_relay_modex_data(world->post, asker, ok, bytes, length);
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
    if (world == NULL || mpi_relay_store(world->post, id, request) < 0)
        pmix_server_store_reply(host->pmix.server, id, STORE_FULL, NULL, 0);
}

static void pmix_event(void *context, const void *bytes, size_t length)
{
    const struct mpi_world *world = oldest(context);
    if (world != NULL)
        mpi_relay_event(world->post, bytes, length);
}

/* The environment with which the worker of this rank was started; empty if it is not known. */
static void read_given(const struct mpi_world *world, int rank, struct buf *out)
{
    int index = index_of(world, rank);
    pid_t pid = index >= 0 ? world->job.ops->pid(world->job.context, index) : 0;
    char *path AUTO_FREE = mem_printf("/proc/%d/environ", (int)pid);
    if (pid == 0 || fd_read_file(path, out, NULL) < 0)
        buf_clear(out);
}

static void relay_spawn(const struct mpi_world *world, uint64_t id,
                        const struct pmix_spawn *request)
{
    AUTO_BUF struct buf given = BUF_INIT(ENVIRONMENT_MAX);
    read_given(world, request->rank - first_of(world), &given);
    if (mpi_relay_spawn(world->post, id, request, &given) == 0)
        return;
    log_warning(&world->post->log,
                "a rank asks for others with more than %zu MiB of arguments and variables",
                FRAME_MPI_DATA_MAX >> 20);
    pmix_server_spawn_reply(world->host->pmix.server, id, PMIX_SPAWN_FAILED, NULL);
}

static void pmix_spawn(void *context, uint64_t id, const struct pmix_spawn *request)
{
    struct mpi_host *host = context;
    struct mpi_world *world = world_with(host, request->rank);
    if (world == NULL)
        pmix_server_spawn_reply(host->pmix.server, id, PMIX_SPAWN_FAILED, NULL);
    else if (world->job.prepare->elastic)
        refuse_spawn(world, request->rank - first_of(world));
    else
        relay_spawn(world, id, request);
}

static void pmi1_aborted(void *context, int rank, int code, const char *text)
{
    post_abort(context, rank, code, text);
}

static void pmi1_barrier_in(void *context, const char *bytes, size_t length)
{
    struct mpi_world *world = context;
    if (mpi_relay_barrier(world->post, bytes, length) == 0)
        return;
    too_large(world->host, length);
    post_abort(world, (int)world->job.prepare->workers[0]->rank, 1, "too much data in PMI-1");
}

static void pmi1_spawn(void *context, int rank, const struct pmi1_spawn *request)
{
    const struct mpi_world *world = context;
    if (world->job.prepare->elastic) {
        refuse_spawn(world, rank);
        return;
    }
    _Static_assert(2 * PMI1_SPAWN_BYTES_MAX <= FRAME_MPI_DATA_MAX, "a request fits");
    mpi_relay_spawn_pmi1(world->post, rank, first_of(world) + rank, request);
}

static void pmi1_name(void *context, int rank, enum pmi1_name_request request, const char *service,
                      const char *port)
{
    const struct mpi_world *world = context;
    mpi_relay_name(world->post, rank, request, service, port);
}

/* The driver knows ranks by their seats. */
static void relay_signal(void *context, int number, int signal)
{
    const struct mpi_world *world = context;
    signal_here(world, number < 0 ? number : number - first_of(world), signal);
}

const char *mpi_world_frame(struct mpi_world *world, uint8_t type, const void *message)
{
    if (!world->registered && world->pmi1 == NULL)
        return NULL;
    struct mpi_relay_ends ends = {.log = &world->post->log,
                                  .pmix = world->registered ? world->host->pmix.server : NULL,
                                  .pmi1 = world->pmi1,
                                  .job_id = world->job.job_id,
                                  .signal = relay_signal,
                                  .context = world};
    return mpi_relay_frame(&ends, type, message);
}

/* Did this local rank ever speak to the server it was given? */
static bool has_spoken(const void *context, int index)
{
    const struct mpi_world *world = context;
    switch (kind_of(world, index)) {
    case MPI_PMIX:
        return world->registered &&
               pmix_server_worker_state(world->host->pmix.server, number_of(world, index)) !=
                   PMIX_WORKER_SILENT;
    case MPI_PMI1: return pmi1_wire_has_spoken(world->pmi1, index);
    default: return false;
    }
}

struct mpi_host *mpi_host_create(struct loop *loop, const struct post *post)
{
    struct mpi_host *host = mem_alloc(sizeof(*host));
    *host = (struct mpi_host){.loop = loop, .post = post};
    return host;
}

void mpi_host_destroy(struct mpi_host *host)
{
    if (host == NULL)
        return;
    mpi_pmix_leave(&host->pmix);
    free(host);
}

void mpi_host_abandon(struct mpi_host *host)
{
    if (host != NULL)
        host->abandoned = true;
}

bool mpi_host_has_thread(const struct mpi_host *host)
{
    return host != NULL && host->pmix.server != NULL;
}

static int need_pmix(struct mpi_host *host, const char *module_path, const char *hostname,
                     struct error *err)
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
    const struct mpi_pmix_start start = {module_path, hostname, &ops, host};
    return mpi_pmix_need(&host->pmix, host->loop, &start, err);
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
    if (need_pmix(world->host, job->module_path, pmix_register_name(job), err) < 0)
        return -1;
    world->nspace = mem_printf(PMIX_NSPACE_FORMAT, job->job_id, world->post->epoch);
    int result = pmix_register(world->host->pmix.server, job, world->nspace, err);
    world->registered = result == 0;
    return result;
}

static int open_servers(struct mpi_world *world, struct error *err)
{
    static const struct pmi1_wire_ops pmi1_ops = {.aborted = pmi1_aborted,
                                                  .barrier_in = pmi1_barrier_in,
                                                  .name = pmi1_name,
                                                  .spawn = pmi1_spawn};
    const struct mpi_job *job = &world->job;
    if (check_workers(job, err) < 0 || (wants(job, MPI_PMIX) && register_world(world, err) < 0))
        return -1;
    if (wants(job, MPI_PMI1)) {
        char *kvsname AUTO_FREE = mem_printf("%s_%u", job->job_id, world->post->epoch);
        world->pmi1 = pmi1_wire_create(world->host->loop, &world->post->log, &world->job, kvsname,
                                       &pmi1_ops, world);
    }
    /* Workers that may rejoin others have no MPI, whatever their libraries map. */
    if (!job->prepare->elastic || wants(job, MPI_PMIX) || wants(job, MPI_PMI1))
        mpi_look_begin(world->look, &world->job, world->nspace);
    return 0;
}

struct mpi_world *mpi_world_create(struct mpi_host *host, const struct mpi_job *job,
                                   struct error *err)
{
    struct mpi_world *world = mem_alloc(sizeof(*world));
    *world = (struct mpi_world){.next = host->worlds, .host = host, .post = job->post, .job = *job};
    world->look = mpi_look_create(host->loop, has_spoken, world);
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
    mpi_look_end(world->look);
    mpi_look_destroy(world->look);
    if (world->registered && !world->host->abandoned)
        pmix_server_job_end(world->host->pmix.server, first_of(world));
    pmi1_wire_destroy(world->pmi1);
    if (post_link(world->post) != NULL)
        link_drop_pieces(post_link(world->post), world->post->epoch);
    free(world->nspace);
    free(world);
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
        pmix_server_job(host->pmix.server, &job, err) < 0)
        return -1;
    pmix_server_job_end(host->pmix.server, 0);
    return 0;
}

int mpi_world_worker(struct mpi_world *world, int index, struct strv *env, struct strv *hints,
                     int *keep_fd, struct error *err)
{
    enum mpi_kind kind = kind_of(world, index);
    *keep_fd = -1;
    /* Open MPI and MPICH load hwloc, and hwloc all its plugins: a tenth of what a rank's start
     * costs goes into X11, libxml2 and the Unicode tables behind them. A rank has no display, and
     * hwloc reads the XML that it has written without libxml2. */
    if (kind != MPI_NONE)
        strv_env_set(hints, "HWLOC_PLUGINS_BLACKLIST", "hwloc_gl.so,hwloc_xml_libxml.so");
    switch (kind) {
    case MPI_PMIX:
        return pmix_server_worker_env(world->host->pmix.server, number_of(world, index), env, hints,
                                      err);
    case MPI_PMI1: return pmi1_wire_worker(world->pmi1, index, env, keep_fd, err);
    default: return 0;
    }
}

void mpi_world_spawned(struct mpi_world *world, int index, pid_t pid)
{
    if (kind_of(world, index) == MPI_PMIX && pid > 0)
        pmix_server_worker_started(world->host->pmix.server, number_of(world, index), pid);
}

static void post_left(struct mpi_world *world, int index)
{
    Hvdrun__Abort message = HVDRUN__ABORT__INIT;
    message.seat = world->job.prepare->workers[index]->seat;
    message.left = true;
    message.when_ns = (uint64_t)clock_mono_ns();
    post_message(world->post, FRAME_ABORT, &message.base);
}

/* Has this local rank left MPI as it should, or never been expected in it? */
static bool has_finalized(const struct mpi_world *world, int index)
{
    switch (kind_of(world, index)) {
    case MPI_PMIX: {
        enum pmix_worker_state state =
            pmix_server_worker_state(world->host->pmix.server, number_of(world, index));
        return state == PMIX_WORKER_FINALIZED || state == PMIX_WORKER_ABORTED;
    }
    case MPI_PMI1: return pmi1_wire_has_finalized(world->pmi1, index);
    default: return true;
    }
}

void mpi_world_exited(struct mpi_world *world, int index, int code, int signal)
{
    if (code == 0 && signal == 0 && !has_finalized(world, index)) {
        mpi_look_left(world->look, index);
        if (has_spoken(world, index))
            post_left(world, index);
    }
    if (kind_of(world, index) != MPI_PMIX)
        return;
    pmix_server_worker_ended(world->host->pmix.server, number_of(world, index), code, signal);
    if (world->published)
        mpi_relay_rank_ended(world->post, world->nspace,
                             (int)world->job.prepare->workers[index]->rank);
}

void mpi_world_collect(struct mpi_world *world, int index)
{
    if (kind_of(world, index) == MPI_PMIX)
        pmix_server_dispatch(world->host->pmix.server);
    else if (kind_of(world, index) == MPI_PMI1)
        pmi1_wire_collect(world->pmi1, index);
}
