/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job towards PMIx: its namespace with everything that a worker may ask about the job, the apps,
 * the nodes and each rank, given in advance, so that no worker has to ask later.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "pmix/module/operations.h"

#define WAIT_SECONDS 5
#define MAP_MAX ((size_t)16 << 20)

/* ---- Waiting --------------------------------------------------------------------------------- */

/*
 * A wait for PMIx's thread, with a time limit.
 *
 * Registering takes microseconds, and it is simplest to wait for it. But libpmix's thread can lock
 * up for good (4.2: when a worker is killed while it connects). An agent that waits for it would
 * hang and could not end the job. So the wait has a limit. After it we give the library up (struct
 * server, `stuck`); the batch is freed by its last user.
 */
struct batch {
    pthread_mutex_t lock;
    pthread_cond_t done;
    int waiting;          /* for that many calls of batch_done() */
    bool abandoned;       /* the wait was given up: the last call frees it */
    pmix_status_t status; /* the first that went wrong */
};

static struct batch *batch_create(int count)
{
    struct batch *batch = mem_alloc(sizeof(*batch));
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    batch->waiting = count;
    batch->status = PMIX_SUCCESS;
    pthread_mutex_init(&batch->lock, NULL);
    pthread_cond_init(&batch->done, &attributes);
    pthread_condattr_destroy(&attributes);
    return batch;
}

static void batch_destroy(struct batch *batch)
{
    pthread_mutex_destroy(&batch->lock);
    pthread_cond_destroy(&batch->done);
    free(batch);
}

static void batch_done(pmix_status_t status, void *context)
{
    struct batch *batch = context;
    pthread_mutex_lock(&batch->lock);
    if (!server_ok(status) && server_ok(batch->status))
        batch->status = status;
    batch->waiting--;
    bool last = batch->waiting == 0;
    bool alone = last && batch->abandoned;
    if (last && !alone)
        pthread_cond_signal(&batch->done);
    pthread_mutex_unlock(&batch->lock);
    if (alone)
        batch_destroy(batch);
}

/* The first failure, PMIX_SUCCESS, or PMIX_ERR_TIMEOUT after 5 s; the batch is gone. */
static pmix_status_t batch_wait(struct batch *batch)
{
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += WAIT_SECONDS;
    int late = 0;
    pthread_mutex_lock(&batch->lock);
    while (batch->waiting > 0 && late != ETIMEDOUT)
        late = pthread_cond_timedwait(&batch->done, &batch->lock, &end);
    batch->abandoned = batch->waiting > 0;
    bool abandoned = batch->abandoned;
    pmix_status_t status = abandoned ? PMIX_ERR_TIMEOUT : batch->status;
    pthread_mutex_unlock(&batch->lock);
    if (!abandoned)
        batch_destroy(batch);
    return status;
}

/* ---- The namespace --------------------------------------------------------------------------- */

/* PMIx does not hear of nodes without ranks, which a namespace that was spawned can have. */
static bool is_used(const struct server_job *job, int node)
{
    return job->node_sizes[node] > 0;
}

/* The number of a node for PMIx, or of all nodes. */
static uint32_t node_number(const struct server_job *job, int node)
{
    uint32_t number = 0;
    for (int n = 0; n < node; n++)
        number += is_used(job, n);
    return number;
}

/* "0,1;2,3": the ranks of each node, or of one node (`only` >= 0). */
static char *ranks_text(const struct pmix_job *job, int only)
{
    struct buf text AUTO_BUF = BUF_INIT(MAP_MAX);
    for (int n = 0; n < job->node_count; n++) {
        if ((only >= 0 && n != only) || job->nodes[n].rank_count == 0)
            continue;
        if (text.length > 0)
            buf_putc(&text, ';');
        for (int i = 0; i < job->nodes[n].rank_count; i++)
            buf_printf(&text, i > 0 ? ",%d" : "%d", job->nodes[n].ranks[i]);
    }
    return buf_take(&text);
}

static char *names_text(const struct pmix_job *job)
{
    struct buf text AUTO_BUF = BUF_INIT(MAP_MAX);
    for (int n = 0; n < job->node_count; n++)
        if (job->nodes[n].rank_count > 0)
            buf_printf(&text, text.length > 0 ? ",%s" : "%s", job->nodes[n].name);
    return buf_take(&text);
}

static int add_maps(const struct pmix_job *job, struct infos *list, struct error *err)
{
    char *names AUTO_FREE = names_text(job);
    char *ranks AUTO_FREE = ranks_text(job, -1);
    char *node_map = NULL;
    char *proc_map = NULL;
    pmix_status_t status = PMIx_generate_regex(names, &node_map);
    if (status == PMIX_SUCCESS)
        status = PMIx_generate_ppn(ranks, &proc_map);
    if (status == PMIX_SUCCESS) {
        infos_add(list, PMIX_NODE_MAP, node_map, PMIX_REGEX);
        infos_add(list, PMIX_PROC_MAP, proc_map, PMIX_REGEX);
    }
    free(node_map);
    free(proc_map);
    return status == PMIX_SUCCESS ? 0 : server_error(err, status, "describe the job's nodes");
}

static void add_job(const struct server_job *job, const struct pmix_job *from, struct infos *list)
{
    uint32_t local_size = (uint32_t)job->local_count;
    char *peers AUTO_FREE = ranks_text(from, job->my_node);
    infos_add_text(list, PMIX_JOBID, job->nspace);
    if (job->parent.nspace[0] != '\0') {
        infos_add(list, PMIX_PARENT_ID, &job->parent, PMIX_PROC);
        infos_add_true(list, PMIX_SPAWNED);
    }
    infos_add_u32(list, PMIX_UNIV_SIZE, (uint32_t)job->universe_size);
    infos_add_u32(list, PMIX_JOB_SIZE, (uint32_t)job->size);
    infos_add_u32(list, PMIX_MAX_PROCS, (uint32_t)job->size);
    infos_add_u32(list, PMIX_NUM_SLOTS, (uint32_t)job->universe_size);
    infos_add_u32(list, PMIX_NUM_NODES, node_number(job, job->node_count));
    infos_add_u32(list, PMIX_JOB_NUM_APPS, (uint32_t)job->app_count);
    if (job->local_count > 0) {
        infos_add_u32(list, PMIX_LOCAL_SIZE, local_size);
        infos_add_u32(list, PMIX_NODE_SIZE, local_size);
        infos_add_u32(list, PMIX_NODEID, node_number(job, job->my_node));
        infos_add_text(list, PMIX_LOCAL_PEERS, peers);
        infos_add_rank(list, PMIX_LOCALLDR, (uint32_t)job->locals[0].rank);
    }
    if (job->oversubscribed)
        infos_add_true(list, PMIX_NODE_OVERSUBSCRIBED);
}

/* Open MPI 5 keeps its session folders here, and else in /tmp, where killed ranks leave them. Open
 * MPI 4, which has OMPI_MCA_orte_tmpdir_base, would take the folder away at the end of a rank. */
static void add_tmpdir(const struct server *server, struct infos *list)
{
#if PMIX_VERSION_MAJOR >= 5
    infos_add_text(list, PMIX_TMPDIR, server->tmpdir);
#else
    (void)server, (void)list;
#endif
}

static void add_apps(const struct server_job *job, struct infos *list)
{
    for (int i = 0; i < job->app_count; i++) {
        const struct job_app *app = &job->apps[i];
        struct infos nested AUTO_INFOS = {0};
        infos_add_u32(&nested, PMIX_APPNUM, (uint32_t)i);
        infos_add_u32(&nested, PMIX_APP_SIZE, (uint32_t)app->np);
        infos_add_rank(&nested, PMIX_APPLDR, (uint32_t)app->first_rank);
        infos_add_text(&nested, PMIX_WDIR, app->wdir);
        infos_add_text(&nested, PMIX_APP_ARGV, app->arguments);
        infos_add_array(list, PMIX_APP_INFO_ARRAY, PMIX_INFO, nested.items, nested.count);
    }
}

static void add_nodes(const struct server_job *job, const struct pmix_job *from, struct infos *list)
{
    for (int n = 0; n < job->node_count; n++) {
        if (!is_used(job, n))
            continue;
        char *peers AUTO_FREE = ranks_text(from, n);
        struct infos nested AUTO_INFOS = {0};
        infos_add_text(&nested, PMIX_HOSTNAME, job->node_names[n]);
        infos_add_u32(&nested, PMIX_NODEID, node_number(job, n));
        infos_add_u32(&nested, PMIX_LOCAL_SIZE, (uint32_t)job->node_sizes[n]);
        infos_add_u32(&nested, PMIX_NODE_SIZE, (uint32_t)job->node_sizes[n]);
        infos_add_text(&nested, PMIX_LOCAL_PEERS, peers);
        infos_add_rank(&nested, PMIX_LOCALLDR, (uint32_t)from->nodes[n].ranks[0]);
        infos_add_array(list, PMIX_NODE_INFO_ARRAY, PMIX_INFO, nested.items, nested.count);
    }
}

static void add_ranks(const struct server_job *job, struct infos *list)
{
    int app = 0;
    uint32_t *numbers AUTO_FREE = mem_array((size_t)job->node_count, sizeof(*numbers));
    for (int n = 1; n < job->node_count; n++)
        numbers[n] = numbers[n - 1] + is_used(job, n - 1);
    for (int rank = 0; rank < job->size; rank++) {
        while (app + 1 < job->app_count && rank >= job->apps[app].first_rank + job->apps[app].np)
            app++;
        int node = job->node_of[rank];
        uint16_t local_rank = (uint16_t)job->local_rank_of[rank];
        struct infos nested AUTO_INFOS = {0};
        infos_add_rank(&nested, PMIX_RANK, (uint32_t)rank);
        infos_add_rank(&nested, PMIX_GLOBAL_RANK, (uint32_t)rank);
        infos_add_u32(&nested, PMIX_APPNUM, (uint32_t)app);
        infos_add_rank(&nested, PMIX_APP_RANK, (uint32_t)(rank - job->apps[app].first_rank));
        infos_add_u16(&nested, PMIX_LOCAL_RANK, local_rank);
        infos_add_u16(&nested, PMIX_NODE_RANK, local_rank);
        infos_add_u32(&nested, PMIX_NODEID, numbers[node]);
        infos_add_text(&nested, PMIX_HOSTNAME, job->node_names[node]);
        infos_add_u32(&nested, PMIX_REINCARNATION, 0);
        const struct local *local = node == job->my_node ? &job->locals[local_rank] : NULL;
        if (local != NULL && local->cpuset != NULL)
            infos_add_text(&nested, PMIX_CPUSET, local->cpuset);
        infos_add_array(list, PMIX_PROC_INFO_ARRAY, PMIX_INFO, nested.items, nested.count);
    }
}

static pmix_status_t register_nspace(const struct server_job *job, const struct infos *list)
{
    struct batch *batch = batch_create(1);
    pmix_status_t status = PMIx_server_register_nspace(job->nspace, job->local_count, list->items,
                                                       list->count, batch_done, batch);
    if (status != PMIX_SUCCESS) /* done or failed already: no callback comes */
        batch_done(status, batch);
    return batch_wait(batch);
}

static pmix_status_t register_clients(const struct server_job *job)
{
    struct batch *batch = batch_create(job->local_count);
    for (int i = 0; i < job->local_count; i++) {
        pmix_proc_t proc;
        PMIX_LOAD_PROCID(&proc, job->nspace, (pmix_rank_t)job->locals[i].rank);
        pmix_status_t status = PMIx_server_register_client(&proc, job->uid, job->gid,
                                                           &job->locals[i], batch_done, batch);
        if (status != PMIX_SUCCESS)
            batch_done(status, batch);
    }
    return batch_wait(batch);
}

static void deregister_nspace(struct server *server, const struct server_job *job)
{
    struct batch *batch = batch_create(1);
    PMIx_server_deregister_nspace(job->nspace, batch_done, batch);
    server->stuck = server->stuck || batch_wait(batch) == PMIX_ERR_TIMEOUT;
}

/* What killed ranks left; nothing else lies there. */
static void empty_folder(const char *path)
{
    DIR *dir = path != NULL ? opendir(path) : NULL;
    if (dir == NULL)
        return;
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir))
        unlinkat(dirfd(dir), entry->d_name, 0); /* fails for "." and ".." */
    closedir(dir);
}

static int check(const struct server *server, const struct pmix_job *job, struct error *err)
{
    if (server->stuck)
        return error_set(err,
                         "the PMIx library does not answer any more: a new job needs a new agent");
    for (const struct server_job *other = server->jobs; other != NULL; other = other->next)
        if (job->first < other->first + other->size && other->first < job->first + job->size)
            return error_set(err, "the PMIx server still has the job %s", other->nspace);
    if (job->size < 1 || job->node_count < 1 || job->app_count < 1 || job->my_node < 0 ||
        job->my_node >= job->node_count)
        return error_set(err, "a PMIx job needs ranks, nodes and programs");
    if (strlen(job->nspace) > 200)
        return error_set(err, "the PMIx namespace %s is too long", job->nspace);
    int ranks = 0;
    for (int n = 0; n < job->node_count; n++) {
        ranks += job->nodes[n].rank_count;
        for (int i = 0; i < job->nodes[n].rank_count; i++)
            if (job->nodes[n].ranks[i] < 0 || job->nodes[n].ranks[i] >= job->size)
                return error_set(err, "rank %d is outside of the PMIx job", job->nodes[n].ranks[i]);
    }
    if (ranks != job->size)
        return error_set(err, "a PMIx job of %d ranks has %d on its nodes", job->size, ranks);
    return 0;
}

int namespace_register(struct server *server, const struct pmix_job *from, struct error *err)
{
    if (check(server, from, err) < 0)
        return -1;
    struct infos list AUTO_INFOS = {0};
    if (add_maps(from, &list, err) < 0)
        return -1;
    struct server_job *job = server_job_create(from);
    add_job(job, from, &list);
    add_tmpdir(server, &list);
    add_apps(job, &list);
    add_nodes(job, from, &list);
    add_ranks(job, &list);
    struct complaints complaints;
    complaints_begin(&complaints);
    pmix_status_t status = register_nspace(job, &list);
    if (server_ok(status) && job->local_count > 0)
        status = register_clients(job);
    complaints_end(&complaints, server);
    if (status == PMIX_ERR_TIMEOUT) {
        server->stuck = true;
        list = (struct infos){0}; /* PMIx may still read it */
    }
    if (!server_ok(status)) {
        if (!server->stuck)
            deregister_nspace(server, job);
        server_job_destroy(job);
        return server_error(err, status, "register the job with PMIx");
    }
    job->next = server->jobs;
    server->jobs = job;
    server->alone = job->node_count == 1;
    return 0;
}

static void end_one(struct server *server, struct server_job **at)
{
    struct server_job *job = *at;
    publish_store_end_nspace(server->store, job->nspace);
    server_arm_timer(server);
    deregister_nspace(server, job);
    if (server->stuck)
        server_log(server, LOG_WARNING, "the PMIx library does not answer any more");
    empty_folder(job->shm_dir);
    *at = job->next;
    if (!server->stuck) /* else late callbacks still have its locals */
        server_job_destroy(job);
}

void namespace_end(struct server *server, int first)
{
    struct server_job **at = &server->jobs;
    while (*at != NULL && (*at)->first != first)
        at = &(*at)->next;
    if (*at == NULL)
        return;
    bridge_run(&server->bridge, server);
    if (server->jobs->next == NULL) { /* else they may be those of another job */
        bridge_drop_parked(&server->bridge);
        group_destroy_all(server);
    }
    end_one(server, at);
}

void namespace_end_all(struct server *server)
{
    while (server->jobs != NULL)
        namespace_end(server, server->jobs->first);
}
