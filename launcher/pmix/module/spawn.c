/* SPDX-License-Identifier: Apache-2.0 */
/* PMIx_Spawn, and so MPI_Comm_spawn. It is not supported, but a refusal alone would leave the other
 * ranks of the communicator waiting (Open MPI). So the request stays open until the job ends. */
#include <stdlib.h>

#include "base/mem.h"
#include "pmix/module/operations.h"

struct spawn_request {
    struct request base;
    int rank;
    pmix_spawn_cbfunc_t done;
    void *done_data;
};

static void drop(struct request *base)
{
    struct spawn_request *request = (struct spawn_request *)base;
    pmix_nspace_t none = "";
    request->done(PMIX_ERR_NOT_SUPPORTED, none, request->done_data);
    free(request);
}

static void run(struct server *server, struct request *base)
{
    const struct local *local = server_local(server, ((struct spawn_request *)base)->rank);
    if (local == NULL) {
        drop(base);
        return;
    }
    bridge_park(&server->bridge, base);
    server->ops.spawn(server->context, local->rank);
}

static const struct request_kind spawn_kind = {run, drop};

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
