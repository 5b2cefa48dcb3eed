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
    int rank;
    bool connected; /* else: finalized */
};

static void run(struct server *server, struct request *base)
{
    struct client_request *request = (struct client_request *)base;
    struct local *local = server_local(server, request->rank);
    if (local != NULL && request->connected) {
        local->state = PMIX_WORKER_CONNECTED;
        server->ops.connected(server->context, local->rank);
    } else if (local != NULL) {
        if (local->state == PMIX_WORKER_CONNECTED)
            local->state = PMIX_WORKER_FINALIZED;
        server->ops.finalized(server->context, local->rank);
    }
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
    *request = (struct client_request){{.kind = &client_kind}, (int)proc->rank, connected};
    bridge_push(&server->bridge, &request->base);
    return PMIX_OPERATION_SUCCEEDED;
}

pmix_status_t up_connected(const pmix_proc_t *proc, void *object, pmix_info_t info[], size_t ninfo,
                           pmix_op_cbfunc_t done, void *done_data)
{
    (void)object, (void)info, (void)ninfo, (void)done, (void)done_data;
    return push(proc, true);
}

pmix_status_t up_finalized(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t done,
                           void *done_data)
{
    (void)object, (void)done, (void)done_data;
    return push(proc, false);
}

/* ---- Abort ----------------------------------------------------------------------------------- */

/* PMIx_Abort, and so MPI_Abort. The worker waits until the agent knows, then exits, so
 * that the exit status is the one it chose. */
struct abort_request {
    struct request base;
    int rank, status;
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
    struct local *local = server_local(server, request->rank);
    if (local != NULL) {
        local->state = PMIX_WORKER_ABORTED;
        server->ops.aborted(server->context, local->rank, request->status, request->message,
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
                                      .rank = (int)proc->rank,
                                      .status = status,
                                      .whole_job = whole_job,
                                      .message = mem_strdup(message),
                                      .done = done,
                                      .done_data = done_data};
    bridge_push(&server->bridge, &request->base);
    return PMIX_SUCCESS;
}

/* ---- Spawn ----------------------------------------------------------------------------------- */

/* PMIx_Spawn, and so MPI_Comm_spawn. It is not supported, but a refusal alone would leave the other
 * ranks of the communicator waiting (Open MPI). So the request stays open until the job ends. */
struct spawn_request {
    struct request base;
    int rank;
    pmix_spawn_cbfunc_t done;
    void *done_data;
};

static void drop_spawn(struct request *base)
{
    struct spawn_request *request = (struct spawn_request *)base;
    pmix_nspace_t none = "";
    request->done(PMIX_ERR_NOT_SUPPORTED, none, request->done_data);
    free(request);
}

static void run_spawn(struct server *server, struct request *base)
{
    const struct local *local = server_local(server, ((struct spawn_request *)base)->rank);
    if (local == NULL) {
        drop_spawn(base);
        return;
    }
    bridge_park(&server->bridge, base);
    server->ops.spawn(server->context, local->rank);
}

static const struct request_kind spawn_kind = {run_spawn, drop_spawn};

pmix_status_t up_spawn(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                       const pmix_app_t apps[], size_t napps, pmix_spawn_cbfunc_t done,
                       void *done_data)
{
    (void)info, (void)ninfo, (void)apps, (void)napps;
    struct server *server = server_active();
    if (server == NULL || server->ops.spawn == NULL)
        return PMIX_ERR_NOT_SUPPORTED;
    struct spawn_request *request = mem_alloc(sizeof(*request));
    *request = (struct spawn_request){{.kind = &spawn_kind}, (int)proc->rank, done, done_data};
    bridge_push(&server->bridge, &request->base);
    return PMIX_SUCCESS;
}
