/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PMIx_Connect and PMIx_Disconnect, among ranks of the job: all have to ask for it. What the
 * standard asks of us besides, to report the death of a member to the others, happens for every
 * rank anyway (events.c).
 */
#include <stdlib.h>

#include "base/mem.h"
#include "pmix/module/collective.h"
#include "pmix/module/operations.h"

struct connect_request {
    struct collective collective;
    pmix_op_cbfunc_t done;
    void *done_data;
};

static void finish(struct collective *collective, pmix_status_t status, uint64_t round, char *bytes,
                   size_t length)
{
    (void)round, (void)length;
    struct connect_request *request = (struct connect_request *)collective;
    free(bytes);
    request->done(status, request->done_data);
    collective_clear(collective);
    free(request);
}

static pmix_status_t push(const char *operation, const pmix_proc_t *procs, size_t count,
                          pmix_op_cbfunc_t done, void *done_data)
{
    struct server *server = server_active();
    if (server == NULL)
        return PMIX_ERR_NOT_SUPPORTED;
    struct connect_request *request = mem_alloc(sizeof(*request));
    *request = (struct connect_request){{.finish = finish}, done, done_data};
    collective_init(&request->collective, operation, procs, count, NULL, 0);
    collective_push(server, &request->collective);
    return PMIX_SUCCESS;
}

pmix_status_t up_connect(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                         size_t ninfo, pmix_op_cbfunc_t done, void *done_data)
{
    (void)info, (void)ninfo;
    return push("connect", procs, nprocs, done, done_data);
}

pmix_status_t up_disconnect(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                            size_t ninfo, pmix_op_cbfunc_t done, void *done_data)
{
    (void)info, (void)ninfo;
    return push("disconnect", procs, nprocs, done, done_data);
}
