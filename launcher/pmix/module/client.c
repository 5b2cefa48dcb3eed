/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers that connect and finalize. We let PMIx go on at once, so that no worker waits for the
 * loop; the loop learns it a moment later, and always before the exit that follows.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "pmix/module/operations.h"

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
