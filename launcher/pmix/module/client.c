/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker's life: its environment, how it connects and finalizes, aborts, spawns, and logs.
 *
 * When workers connect and finalize, we let PMIx go on at once, so that no worker waits for the
 * loop; the loop learns it a moment later, and always before the exit that follows.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "pmix/module/operations.h"

/* What Open MPI says where it has nothing to say. */
#define NO_MESSAGE "N/A"

struct client_request {
    struct request base;
    pmix_proc_t proc;
    bool connected; /* else: finalized */
};

static void run(struct server *server, struct request *base)
{
    struct client_request *request = (struct client_request *)base;
    struct local *local = server_local_proc(server, &request->proc);
    if (local != NULL && request->connected)
        local->state = PMIX_WORKER_CONNECTED;
    else if (local != NULL && local->state == PMIX_WORKER_CONNECTED)
        local->state = PMIX_WORKER_FINALIZED;
    free(request);
}

static void drop(struct request *request)
{
    free(request);
}

static const struct request_kind client_kind = {run, drop};

static pmix_status_t push(const pmix_proc_t *proc, bool connected)
{
    struct server *server = server_active();
    if (server == NULL)
        return PMIX_ERR_NOT_SUPPORTED;
    struct client_request *request =
        MEM_NEW((struct client_request){{.kind = &client_kind}, *proc, connected});
    bridge_push(&server->bridge, &request->base);
    return PMIX_OPERATION_SUCCEEDED;
}

pmix_status_t up_connected(const pmix_proc_t *proc, void *object, pmix_info_t info[], size_t ninfo,
                           pmix_op_cbfunc_t done, void *done_data)
{
    (void)info, (void)ninfo, (void)done, (void)done_data;
    struct local *local = object;
    if (local != NULL)
        local->connections++;
    return push(proc, true);
}

static void renewed(pmix_status_t status, void *context)
{
    (void)status, (void)context;
}

/* The rank may come back, as each session of Open MPI 5 connects anew. libpmix 5 and 6 take the end
 * of its connection for a death, and complete without it whatever fence the others are in by then.
 * A client that is deregistered has no connection that could end. Both calls only queue: PMIx's
 * thread does them before it writes the answer, so the end of the connection is the answer.
 * On several nodes, the new registration would hide what the rank has put there. libpmix 4 may not
 * hear a later client, and version 7 waits for the rank. */
static void renew(const pmix_proc_t *proc, struct local *local)
{
    long version = server_library_major();
    if (version < 5 || version > 6)
        return;
    PMIx_server_deregister_client(proc, renewed, NULL);
    PMIx_server_register_client(proc, local->job->uid, local->job->gid, local, renewed, NULL);
}

pmix_status_t up_finalized(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t done,
                           void *done_data)
{
    (void)done, (void)done_data;
    struct local *local = object;
    const struct server *server = server_active();
    if (local != NULL && --local->connections == 0 && server != NULL && server_is_alone(server))
        renew(proc, local);
    return push(proc, false);
}

/* ---- Abort ----------------------------------------------------------------------------------- */

/* PMIx_Abort, and so MPI_Abort. The worker waits until the agent knows, then exits, so
 * that the exit status is the one it chose. */
struct abort_request {
    struct request base;
    pmix_proc_t proc;
    int status;
    bool whole_job;
    char *message;
    pmix_op_cbfunc_t done;
    void *done_data;
};

static void finish_abort(struct abort_request *request, pmix_status_t status)
{
    if (request->done != NULL)
        request->done(status, request->done_data);
    free(request->message);
    free(request);
}

static void run_abort(struct server *server, struct request *base)
{
    struct abort_request *request = (struct abort_request *)base;
    struct local *local = server_local_proc(server, &request->proc);
    if (local != NULL) {
        local->state = PMIX_WORKER_ABORTED;
        server->ops.aborted(server->context, local_number(local), request->status, request->message,
                            request->whole_job);
    }
    finish_abort(request, local != NULL ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND);
}

static void drop_abort(struct request *base)
{
    finish_abort((struct abort_request *)base, PMIX_ERR_UNREACH);
}

static const struct request_kind abort_kind = {run_abort, drop_abort};

pmix_status_t up_abort(const pmix_proc_t *proc, void *object, int status, const char message[],
                       pmix_proc_t procs[], size_t nprocs, pmix_op_cbfunc_t done, void *done_data)
{
    (void)object;
    struct server *server = server_active();
    if (server == NULL)
        return PMIX_ERR_NOT_SUPPORTED;
    bool whole_job = procs == NULL || nprocs == 0;
    for (size_t i = 0; i < nprocs && !whole_job; i++)
        whole_job = procs[i].rank == PMIX_RANK_WILDCARD;
    if (message == NULL || strcmp(message, NO_MESSAGE) == 0)
        message = "";
    struct abort_request *request = MEM_NEW((struct abort_request){.base = {.kind = &abort_kind},
                                                                   .proc = *proc,
                                                                   .status = status,
                                                                   .whole_job = whole_job,
                                                                   .message = mem_strdup(message),
                                                                   .done = done,
                                                                   .done_data = done_data});
    bridge_push(&server->bridge, &request->base);
    return PMIX_SUCCESS;
}

/* ---- Spawn ----------------------------------------------------------------------------------- */

/* PMIx_Spawn, and so MPI_Comm_spawn: the agent answers when the new ranks start. */
struct spawn_app {
    struct strv argv, env;
    char *wdir, *hosts; /* NULL: not said */
    int np;
};

struct spawn_request {
    struct request base;
    pmix_proc_t proc;
    struct spawn_app *apps;
    size_t count;
    pmix_spawn_cbfunc_t done;
    void *done_data;
};

static void finish_spawn(struct spawn_request *request, pmix_status_t status, const char *nspace)
{
    pmix_nspace_t name;
    PMIX_LOAD_NSPACE(name, nspace);
    request->done(status, name, request->done_data);
    for (size_t i = 0; i < request->count; i++) {
        strv_destroy(&request->apps[i].argv);
        strv_destroy(&request->apps[i].env);
        free(request->apps[i].wdir);
        free(request->apps[i].hosts);
    }
    free(request->apps);
    free(request);
}

static void drop_spawn(struct request *base)
{
    finish_spawn((struct spawn_request *)base, PMIX_ERR_JOB_CANCELED, "");
}

static void run_spawn(struct server *server, struct request *base)
{
    const struct spawn_request *request = (const struct spawn_request *)base;
    const struct local *local = server_local_proc(server, &request->proc);
    if (local == NULL) {
        drop_spawn(base);
        return;
    }
    size_t count = request->count;
    struct pmix_spawn_app *apps AUTO_FREE = mem_array(count + 1, sizeof(*apps));
    for (size_t i = 0; i < count; i++) {
        const struct spawn_app *app = &request->apps[i];
        apps[i] = (struct pmix_spawn_app){strv_items(&app->argv), strv_items(&app->env), app->wdir,
                                          app->hosts, app->np};
    }
    struct pmix_spawn ask = {local_number(local), apps, count};
    uint64_t id = bridge_park(&server->bridge, base);
    server->ops.spawn(server->context, id, &ask);
}

static const struct request_kind spawn_kind = {run_spawn, drop_spawn};

void spawn_reply(struct server *server, uint64_t id, enum pmix_spawn_result result,
                 const char *nspace)
{
    static const pmix_status_t statuses[] = {
        [PMIX_SPAWNED_OK] = PMIX_SUCCESS,
        [PMIX_SPAWN_NO_ROOM] = PMIX_ERR_OUT_OF_RESOURCE,
        [PMIX_SPAWN_NOT_FOUND] = PMIX_ERR_JOB_EXE_NOT_FOUND,
        [PMIX_SPAWN_FAILED] = PMIX_ERR_JOB_FAILED_TO_LAUNCH,
    };
    struct request *base = bridge_unpark(&server->bridge, id, &spawn_kind);
    if (base != NULL)
        finish_spawn((struct spawn_request *)base, statuses[result],
                     result == PMIX_SPAWNED_OK ? nspace : "");
}

/* The text of the app, else that of the whole request; NULL: neither has one. */
static const char *said(const pmix_app_t *app, const pmix_info_t *info, size_t ninfo,
                        const char *key)
{
    const char *own = infos_text(app->info, app->ninfo, key);
    return own != NULL ? own : infos_text(info, ninfo, key);
}

static void copy_spawn_app(struct spawn_app *to, const pmix_app_t *app, const pmix_info_t *info,
                           size_t ninfo)
{
    bool named = app->argv != NULL && app->argv[0] != NULL;
    const char *program = app->cmd != NULL ? app->cmd : named ? app->argv[0] : "";
    const char *wdir = said(app, info, ninfo, PMIX_WDIR); /* Open MPI 4 says the asker's in cwd */
    const char *hosts = said(app, info, ninfo, PMIX_HOST);
    strv_add(&to->argv, program);
    strv_copy(&to->argv, named ? app->argv + 1 : NULL);
    strv_copy(&to->env, app->env);
    to->wdir = mem_strdup(wdir != NULL ? wdir : app->cwd);
    to->hosts = mem_strdup(hosts != NULL ? hosts : said(app, info, ninfo, PMIX_ADD_HOST));
    to->np = app->maxprocs;
}

pmix_status_t up_spawn(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                       const pmix_app_t apps[], size_t napps, pmix_spawn_cbfunc_t done,
                       void *done_data)
{
    struct server *server = server_active();
    if (server == NULL || server->ops.spawn == NULL)
        return PMIX_ERR_NOT_SUPPORTED;
    if (napps == 0)
        return PMIX_ERR_BAD_PARAM;
    struct spawn_request *request = mem_alloc(sizeof(*request));
    *request = (struct spawn_request){.base = {.kind = &spawn_kind},
                                      .proc = *proc,
                                      .apps = mem_array(napps + 1, sizeof(*request->apps)),
                                      .count = napps,
                                      .done = done,
                                      .done_data = done_data};
    for (size_t i = 0; i < napps; i++)
        copy_spawn_app(&request->apps[i], &apps[i], info, ninfo);
    bridge_push(&server->bridge, &request->base);
    return PMIX_SUCCESS;
}

/*
 * The environment of a worker: what PMIx wants set, what Open MPI programs read about themselves,
 * and where temporary files go.
 */

/* The kernel takes no single variable of 128 KiB. */
#define VALUE_MAX ((size_t)120 << 10)

#define LIST_MAX ((size_t)1 << 16)

static void set_number(struct strv *env, const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof(text), "%d", value);
    strv_env_set(env, name, text);
}

static int from_pmix(const struct server_job *job, int rank, struct strv *env, struct error *err)
{
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, job->nspace, (pmix_rank_t)rank);
    char **pairs = NULL;
    pmix_status_t status = PMIx_server_setup_fork(&proc, &pairs);
    for (char **pair = pairs; pair != NULL && *pair != NULL; pair++) {
        if (status == PMIX_SUCCESS)
            strv_env_put(env, *pair);
        free(*pair);
    }
    free(pairs);
    return status == PMIX_SUCCESS ? 0 : server_error(err, status, "prepare a worker for PMIx");
}

static void set_app_lists(const struct server_job *job, struct strv *env)
{
    struct buf counts AUTO_BUF = BUF_INIT(LIST_MAX);
    struct buf firsts AUTO_BUF = BUF_INIT(LIST_MAX);
    for (int i = 0; i < job->app_count; i++) {
        buf_printf(&counts, i > 0 ? " %d" : "%d", job->apps[i].np);
        buf_printf(&firsts, i > 0 ? " %d" : "%d", job->apps[i].first_rank);
    }
    set_number(env, "OMPI_NUM_APP_CTX", job->app_count);
    strv_env_set(env, "OMPI_APP_CTX_NUM_PROCS", buf_text(&counts));
    strv_env_set(env, "OMPI_FIRST_RANKS", buf_text(&firsts));
}

static void set_open_mpi(const struct server_job *job, const struct local *local, struct strv *env)
{
    int local_rank = job->local_rank_of[local->rank];
    const struct job_app *app = &job->apps[local->app];
    set_number(env, "OMPI_COMM_WORLD_RANK", local->rank);
    set_number(env, "OMPI_COMM_WORLD_SIZE", job->size);
    set_number(env, "OMPI_COMM_WORLD_LOCAL_RANK", local_rank);
    set_number(env, "OMPI_COMM_WORLD_LOCAL_SIZE", job->local_count);
    set_number(env, "OMPI_COMM_WORLD_NODE_RANK", local_rank);
    set_number(env, "OMPI_UNIVERSE_SIZE", job->universe_size);
    set_number(env, "OMPI_WORLD_SIZE", job->size);
    set_number(env, "OMPI_WORLD_LOCAL_SIZE", job->local_count);
    set_number(env, "OMPI_MCA_num_procs", job->size);
    set_app_lists(job, env);
    strv_env_set(env, "OMPI_COMMAND", app->command);
    if (strlen(app->arguments) < VALUE_MAX)
        strv_env_set(env, "OMPI_ARGV", app->arguments);
    if (app->wdir != NULL)
        strv_env_set(env, "OMPI_MCA_initial_wdir", app->wdir);
}

static void set_hints(const struct server_job *job, struct strv *hints)
{
    /* What Open MPI picks anyway; but first each rank would try POSIX shared memory, with a file in
     * /dev/shm that a rank killed at that moment leaves behind. */
    strv_env_set(hints, "OMPI_MCA_shmem", "mmap");
    if (job->shm_dir != NULL) {
        strv_env_set(hints, "OMPI_MCA_btl_vader_backing_directory", job->shm_dir); /* 4 */
        strv_env_set(hints, "OMPI_MCA_btl_sm_backing_directory", job->shm_dir);    /* 5 */
    }
    if (job->oversubscribed)
        strv_env_set(hints, "OMPI_MCA_mpi_yield_when_idle", "1");
}

int worker_env(struct server *server, int number, struct strv *env, struct strv *hints,
               struct error *err)
{
    const struct local *local = server_local(server, number);
    if (local == NULL)
        return error_set(err, "rank %d is not one of this node's PMIx ranks", number);
    if (from_pmix(local->job, local->rank, env, err) < 0)
        return -1;
    set_open_mpi(local->job, local, env);
    strv_env_set(env, "PMIX_SERVER_TMPDIR", server->tmpdir);
    strv_env_set(env, "PMIX_SYSTEM_TMPDIR", server->tmpdir);
    strv_env_set(env, "OMPI_MCA_orte_tmpdir_base", server->tmpdir);
    /* Open MPI 4 asks PMIx only when it believes in a launcher it knows; any value will do. */
    strv_env_set(env, "JSM_JSRUN_PORT", "hvdrun");
    strv_env_set(env, "PRTE_LAUNCHED", "1");
    set_hints(local->job, hints);
    return 0;
}

/* PMIx_Log: a worker's text for the launcher's own output. Other destinations (syslog, e-mail, a
 * data base) are not ours to write to and are refused. The library's own help texts come this way
 * too, from the namespace of the server. */

struct log_request {
    struct request base;
    int rank;
    bool library; /* no worker says it */
    struct strv lines;
    pmix_op_cbfunc_t done;
    void *done_data;
};

static void finish_log(struct log_request *request, pmix_status_t status)
{
    if (request->done != NULL)
        request->done(status, request->done_data);
    strv_destroy(&request->lines);
    free(request);
}

static void run_log(struct server *server, struct request *base)
{
    struct log_request *request = (struct log_request *)base;
    for (size_t i = 0; i < request->lines.count; i++) {
        const char *line = request->lines.items[i];
        if (request->library)
            server_complain(server, line, strlen(line));
        else
            server_log(server, LOG_NOTICE, "rank %d: %s", request->rank, line);
    }
    finish_log(request, request->lines.count > 0 ? PMIX_SUCCESS : PMIX_ERR_NOT_SUPPORTED);
}

static void drop_log(struct request *base)
{
    finish_log((struct log_request *)base, PMIX_ERR_UNREACH);
}

static const struct request_kind log_kind = {run_log, drop_log};

void up_log(const pmix_proc_t *client, const pmix_info_t data[], size_t ndata,
            const pmix_info_t directives[], size_t ndirs, pmix_op_cbfunc_t done, void *done_data)
{
    (void)directives, (void)ndirs;
    struct server *server = server_active();
    if (server == NULL) {
        if (done != NULL)
            done(PMIX_ERR_NOT_SUPPORTED, done_data);
        return;
    }
    struct log_request *request =
        MEM_NEW((struct log_request){.base = {.kind = &log_kind},
                                     .rank = (int)client->rank,
                                     .library = strcmp(client->nspace, server->nspace) == 0,
                                     .done = done,
                                     .done_data = done_data});
    for (size_t i = 0; i < ndata; i++) {
        bool ours =
            PMIX_CHECK_KEY(&data[i], PMIX_LOG_STDERR) || PMIX_CHECK_KEY(&data[i], PMIX_LOG_STDOUT);
        if (!ours || data[i].value.type != PMIX_STRING || data[i].value.data.string == NULL)
            continue;
        /* One log line is one line. */
        const char *text = data[i].value.data.string;
        while (*text != '\0') {
            size_t length = strcspn(text, "\n");
            strv_add_n(&request->lines, text, length);
            text += length + (text[length] == '\n' ? 1 : 0);
        }
    }
    bridge_push(&server->bridge, &request->base);
}
