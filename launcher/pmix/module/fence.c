/* SPDX-License-Identifier: Apache-2.0 */
/* Fences. The data of the local participants, if any, is one blob; the result is that of all. */
#include <stdlib.h>

#include "base/mem.h"
#include "pmix/module/collective.h"
#include "pmix/module/operations.h"

struct fence_request {
    struct collective collective;
    pmix_modex_cbfunc_t done;
    void *done_data;
};

/* The result's memory is PMIx's until it calls free on it. */
static void finish(struct collective *collective, pmix_status_t status, uint64_t round, char *bytes,
                   size_t length)
{
    (void)round;
    struct fence_request *request = (struct fence_request *)collective;
    request->done(status, bytes, length, request->done_data, free, bytes);
    collective_clear(collective);
    free(request);
}

pmix_status_t up_fence(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                       size_t ninfo, char *data, size_t ndata, pmix_modex_cbfunc_t done,
                       void *done_data)
{
    (void)info, (void)ninfo;
    struct server *server = server_active();
    if (server == NULL)
        return PMIX_ERR_NOT_SUPPORTED;
    struct fence_request *request = mem_alloc(sizeof(*request));
    *request = (struct fence_request){{.finish = finish}, done, done_data};
    collective_init(&request->collective, "fence", procs, nprocs, data, ndata);
    collective_push(server, &request->collective);
    return PMIX_SUCCESS;
}
