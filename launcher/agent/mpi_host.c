/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/mpi_host.h"

#include <stdlib.h>
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
#include "stacks/printed.h"

struct mpi_host {
    struct loop *loop;
    const struct post *whole; /* the agent's */
    const struct post *post;  /* of the epoch that is prepared; else the agent's */
    struct mpi_job job;
    struct mpi_pmix pmix;
    struct pmi1_wire *pmi1;
    char *nspace; /* of the present epoch */
    struct mpi_look *look;
    bool registered; /* the present epoch's namespace is known to PMIx */
    bool published;  /* the store of all nodes has heard of this one */
};

static enum mpi_kind kind_of(const struct mpi_host *host, int index)
{
    return host->job.kinds[host->job.prepare->workers[index]->app];
}

/* The index of a rank of this node in PREPARE, which is its local rank; -1: it is not here. */
static int index_of(const struct mpi_host *host, int rank)
{
    const struct rank_places *places = host->job.places;
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
static uint32_t seat_of(const struct mpi_host *host, int rank)
{
    int index = index_of(host, rank);
    return index >= 0 ? host->job.prepare->workers[index]->seat : (uint32_t)rank;
}

static void post_abort(struct mpi_host *host, int rank, int status, const char *text)
{
    Hvdrun__Abort message = HVDRUN__ABORT__INIT;
    message.seat = seat_of(host, rank);
    message.status = status;
    message.text = (char *)(text == NULL ? "" : text); /* protobuf-c only reads it */
    message.when_ns = (uint64_t)clock_mono_ns();
    post_message(host->post, FRAME_ABORT, &message.base);
}

static void spawn_wanted(void *context, int rank)
{
    const struct mpi_host *host = context;
    Hvdrun__Abort message = HVDRUN__ABORT__INIT;
    message.seat = seat_of(host, rank);
    message.spawn = true;
    message.when_ns = (uint64_t)clock_mono_ns();
    post_message(host->post, FRAME_ABORT, &message.base);
}

static void pmix_connected(void *context, int rank)
{
    (void)context, (void)rank; /* pmix_server_worker_state() remembers it */
}

/* Open MPI ends the process with _exit() after we answer: what it has printed before would be
 * lost. Until then it waits for the answer. */
static void flush_printed(const struct mpi_host *host, int rank)
{
    int index = index_of(host, rank);
    pid_t pid = index >= 0 ? host->job.ops->pid(host->job.context, index) : 0,
          *below AUTO_FREE = NULL;
    size_t count = pid > 0 ? descendants_list(pid, &below) : 0;
    pid_t found = 0;
    for (size_t i = 0; pid > 0 && i <= count; i++) {
        pid_t one = i == 0 ? pid : below[i - 1];
        struct mpi_finding finding;
        mpi_detect_process(one, &finding);
        if (finding.kind != MPI_PMIX || mpi_process_launched_by_other(one, MPI_PMIX, host->nspace))
            continue;
        if (found != 0)
            return; /* which of them waits for the answer is unknown, and others may print */
        found = one;
    }
    if (found != 0)
        printed_flush(found);
}

static void pmix_aborted(void *context, int rank, int status, const char *message, bool whole_job)
{
    (void)whole_job; /* a rank that ends itself by PMIx_Abort has failed, and so has the job */
    flush_printed(context, rank);
    post_abort(context, rank, status, message);
}

static void pmix_log(void *context, enum log_level level, const char *line)
{
    const struct mpi_host *host = context;
    log_print(&host->post->log, level, "%s", line);
}

static bool is_alone(const struct mpi_host *host)
{
    return host->job.prepare->n_host_ranks <= 1;
}

static bool is_here(const struct mpi_host *host, int rank)
{
    return index_of(host, rank) >= 0;
}

static void pmix_signal(void *context, int rank, int signal)
{
    const struct mpi_host *host = context;
    if (!is_alone(host) && !is_here(host, rank))
        mpi_relay_signal(host->post, rank, signal);
    if (rank == PMIX_EVERY_RANK || is_here(host, rank))
        host->job.ops->signal(host->job.context, rank, signal);
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
    if (mpi_relay_collect(host->post, id, operation, ranks, count, bytes, length) == 0)
        return;
    too_large(host, length);
    pmix_server_collect_reply(host->pmix.server, id, false, 0, NULL, 0);
}

static void pmix_modex(void *context, uint64_t id, int rank)
{
    const struct mpi_host *host = context;
    mpi_relay_modex(host->post, id, rank);
}

static void pmix_modex_answer(void *context, struct pmix_asker asker, bool ok, const void *bytes,
                              size_t length)
{
    const struct mpi_host *host = context;
    mpi_relay_modex_data(host->post, asker, ok, bytes, length);
}

static void pmix_store(void *context, uint64_t id, const struct pmix_store_request *request)
{
    struct mpi_host *host = context;
    host->published = true;
    if (mpi_relay_store(host->post, id, request) < 0)
        pmix_server_store_reply(host->pmix.server, id, STORE_FULL, NULL, 0);
}

static void pmix_event(void *context, const void *bytes, size_t length)
{
    const struct mpi_host *host = context;
    mpi_relay_event(host->post, bytes, length);
}

static void pmi1_aborted(void *context, int rank, int code, const char *text)
{
    post_abort(context, rank, code, text);
}

static void pmi1_barrier_in(void *context, const char *bytes, size_t length)
{
    struct mpi_host *host = context;
    if (mpi_relay_barrier(host->post, bytes, length) == 0)
        return;
    too_large(host, length);
    post_abort(host, (int)host->job.prepare->workers[0]->rank, 1, "too much data in PMI-1");
}

static void pmi1_name(void *context, int rank, enum pmi1_name_request request, const char *service,
                      const char *port)
{
    const struct mpi_host *host = context;
    mpi_relay_name(host->post, rank, request, service, port);
}

void mpi_host_frame(struct mpi_host *host, uint8_t type, const void *message)
{
    if (!host->registered && host->pmi1 == NULL)
        return;
    struct mpi_relay_ends ends = {.log = &host->post->log,
                                  .pmix = host->registered ? host->pmix.server : NULL,
                                  .pmi1 = host->pmi1,
                                  .signal = host->job.ops->signal,
                                  .context = host->job.context};
    mpi_relay_frame(&ends, type, message);
}

/* Did this local rank ever speak to the server it was given? */
static bool has_spoken(const void *context, int index)
{
    const struct mpi_host *host = context;
    int rank = (int)host->job.prepare->workers[index]->rank;
    switch (kind_of(host, index)) {
    case MPI_PMIX:
        return host->pmix.server != NULL &&
               pmix_server_worker_state(host->pmix.server, rank) != PMIX_WORKER_SILENT;
    case MPI_PMI1: return pmi1_wire_has_spoken(host->pmi1, index);
    default: return false;
    }
}

struct mpi_host *mpi_host_create(struct loop *loop, const struct post *post)
{
    struct mpi_host *host = mem_alloc(sizeof(*host));
    *host = (struct mpi_host){.loop = loop, .whole = post, .post = post};
    host->look = mpi_look_create(loop, has_spoken, host);
    return host;
}

void mpi_host_finish(struct mpi_host *host)
{
    mpi_look_end(host->look);
    if (host->registered)
        pmix_server_job_end(host->pmix.server);
    host->registered = false;
    host->published = false;
    pmi1_wire_destroy(host->pmi1);
    host->pmi1 = NULL;
    free(host->nspace);
    host->nspace = NULL;
    host->post = host->whole;
}

void mpi_host_destroy(struct mpi_host *host)
{
    if (host == NULL)
        return;
    mpi_look_destroy(host->look);
    mpi_pmix_leave(&host->pmix);
    free(host);
}

void mpi_host_abandon(struct mpi_host *host)
{
    if (host != NULL)
        host->registered = false;
}

bool mpi_host_has_thread(const struct mpi_host *host)
{
    return host != NULL && host->pmix.server != NULL;
}

static int need_pmix(struct mpi_host *host, const char *module_path, const char *hostname,
                     struct error *err)
{
    static const struct pmix_server_ops ops = {.connected = pmix_connected,
                                               .finalized = pmix_connected,
                                               .aborted = pmix_aborted,
                                               .log = pmix_log,
                                               .signal = pmix_signal,
                                               .collect = pmix_collect,
                                               .modex = pmix_modex,
                                               .modex_answer = pmix_modex_answer,
                                               .store = pmix_store,
                                               .event = pmix_event,
                                               .spawn = spawn_wanted};
    const struct mpi_pmix_start start = {module_path, hostname, &ops, host};
    return mpi_pmix_need(&host->pmix, host->loop, &start, err);
}

static bool wants(const struct mpi_host *host, enum mpi_kind kind)
{
    for (size_t i = 0; i < host->job.prepare->n_apps; i++) {
        if (host->job.kinds[i] == kind)
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

static int register_job(struct mpi_host *host, struct error *err)
{
    host->nspace = mem_printf("%s@%u", host->job.job_id, host->post->epoch);
    int result = pmix_register(host->pmix.server, &host->job, host->nspace, err);
    host->registered = result == 0;
    return result;
}

int mpi_host_prepare(struct mpi_host *host, const struct mpi_job *job, struct error *err)
{
    static const struct pmi1_wire_ops pmi1_ops = {.aborted = pmi1_aborted,
                                                  .barrier_in = pmi1_barrier_in,
                                                  .name = pmi1_name,
                                                  .spawn = spawn_wanted};
    host->job = *job;
    host->post = job->post;
    if (check_workers(job, err) < 0)
        return -1;
    if (wants(host, MPI_PMIX) &&
        (need_pmix(host, job->module_path, pmix_register_name(job), err) < 0 ||
         register_job(host, err) < 0))
        return -1;
    if (wants(host, MPI_PMI1)) {
        char *kvsname AUTO_FREE = mem_printf("%s_%u", job->job_id, host->post->epoch);
        host->pmi1 = pmi1_wire_create(host->loop, &host->post->log, job, kvsname, &pmi1_ops, host);
    }
    /* Workers that may rejoin others have no MPI, whatever their libraries map. */
    if (!job->prepare->elastic || wants(host, MPI_PMIX) || wants(host, MPI_PMI1))
        mpi_look_begin(host->look, &host->job, host->nspace);
    return 0;
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
    pmix_server_job_end(host->pmix.server);
    return 0;
}

int mpi_host_worker(struct mpi_host *host, int index, struct strv *env, struct strv *hints,
                    int *keep_fd, struct error *err)
{
    enum mpi_kind kind = kind_of(host, index);
    int rank = (int)host->job.prepare->workers[index]->rank;
    *keep_fd = -1;
    /* Open MPI and MPICH load hwloc, and hwloc all its plugins: a tenth of what a rank's start
     * costs goes into X11, libxml2 and the Unicode tables behind them. A rank has no display, and
     * hwloc reads the XML that it has written without libxml2. */
    if (kind != MPI_NONE)
        strv_env_set(hints, "HWLOC_PLUGINS_BLACKLIST", "hwloc_gl.so,hwloc_xml_libxml.so");
    switch (kind) {
    case MPI_PMIX: return pmix_server_worker_env(host->pmix.server, rank, env, hints, err);
    case MPI_PMI1: return pmi1_wire_worker(host->pmi1, index, env, keep_fd, err);
    default: return 0;
    }
}

void mpi_host_spawned(struct mpi_host *host, int index, pid_t pid, int keep_fd)
{
    fd_close(&keep_fd);
    if (kind_of(host, index) == MPI_PMIX && pid > 0)
        pmix_server_worker_started(host->pmix.server, (int)host->job.prepare->workers[index]->rank,
                                   pid);
}

static void post_left(struct mpi_host *host, int index)
{
    Hvdrun__Abort message = HVDRUN__ABORT__INIT;
    message.seat = host->job.prepare->workers[index]->seat;
    message.left = true;
    message.when_ns = (uint64_t)clock_mono_ns();
    post_message(host->post, FRAME_ABORT, &message.base);
}

/* Has this local rank left MPI as it should, or never been expected in it? */
static bool has_finalized(const struct mpi_host *host, int index)
{
    int rank = (int)host->job.prepare->workers[index]->rank;
    switch (kind_of(host, index)) {
    case MPI_PMIX: {
        enum pmix_worker_state state = pmix_server_worker_state(host->pmix.server, rank);
        return state == PMIX_WORKER_FINALIZED || state == PMIX_WORKER_ABORTED;
    }
    case MPI_PMI1: return pmi1_wire_has_finalized(host->pmi1, index);
    default: return true;
    }
}

void mpi_host_exited(struct mpi_host *host, int index, int code, int signal)
{
    if (code == 0 && signal == 0 && !has_finalized(host, index)) {
        mpi_look_left(host->look, index);
        if (has_spoken(host, index))
            post_left(host, index);
    }
    if (kind_of(host, index) != MPI_PMIX)
        return;
    int rank = (int)host->job.prepare->workers[index]->rank;
    pmix_server_worker_ended(host->pmix.server, rank, code, signal);
    if (host->published)
        mpi_relay_rank_ended(host->post, host->nspace, rank);
}

void mpi_host_collect(struct mpi_host *host, int index)
{
    if (kind_of(host, index) == MPI_PMIX)
        pmix_server_dispatch(host->pmix.server);
    else if (kind_of(host, index) == MPI_PMI1)
        pmi1_wire_collect(host->pmi1, index);
}
