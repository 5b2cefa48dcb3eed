/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker's life: it connects and finalizes, aborts, spawns.
 *
 * When workers connect and finalize, we let PMIx go on at once, so that no worker waits for the
 * loop; the loop learns it a moment later, and always before the exit that follows.
 */
#include <stdlib.h>
#include <string.h>

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
    struct client_request *request = mem_alloc(sizeof(*request));
    *request = (struct client_request){{.kind = &client_kind}, *proc, connected};
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
    struct abort_request *request = mem_alloc(sizeof(*request));
    *request = (struct abort_request){.base = {.kind = &abort_kind},
                                      .proc = *proc,
                                      .status = status,
                                      .whole_job = whole_job,
                                      .message = mem_strdup(message),
                                      .done = done,
                                      .done_data = done_data};
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
