/* SPDX-License-Identifier: Apache-2.0 */
/* PMIx_Abort, and so MPI_Abort. The worker waits until the agent knows, then exits, so
 * that the exit status is the one it chose. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "pmix/module/operations.h"

/* What Open MPI says where it has nothing to say. */
#define NO_MESSAGE "N/A"

struct abort_request {
    struct request base;
    int rank, status;
    bool whole_job;
    char *message;
    pmix_op_cbfunc_t done;
    void *done_data;
};

static void finish(struct abort_request *request, pmix_status_t status)
{
    if (request->done != NULL)
        request->done(status, request->done_data);
    free(request->message);
    free(request);
}

static void run(struct server *server, struct request *base)
{
    struct abort_request *request = (struct abort_request *)base;
    struct local *local = server_local(server, request->rank);
    if (local != NULL) {
        local->state = PMIX_WORKER_ABORTED;
        server->ops.aborted(server->context, local->rank, request->status, request->message,
                            request->whole_job);
    }
    finish(request, local != NULL ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND);
}

static void drop(struct request *base)
{
    finish((struct abort_request *)base, PMIX_ERR_UNREACH);
}

static const struct request_kind abort_kind = {run, drop};

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
