/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fences. PMIx calls when all local participants are in; their data, if any, is one blob. On one
 * node that is already the result (PMIx mostly does not even ask); over several nodes the agent
 * sends it to the others and brings back all blobs, concatenated.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "pmix/module/server.h"

struct fence_request {
    struct request base;
    pmix_proc_t *procs;
    size_t count;
    char *bytes;
    size_t length;
    pmix_modex_cbfunc_t done;
    void *done_data;
};

/* The result's memory is PMIx's until it calls free on it. */
static void finish(struct fence_request *request, pmix_status_t status, char *bytes, size_t length)
{
    request->done(status, bytes, length, request->done_data, free, bytes);
    free(request->procs);
    free(request);
}

static void drop(struct request *base)
{
    struct fence_request *request = (struct fence_request *)base;
    free(request->bytes);
    finish(request, PMIX_ERR_UNREACH, NULL, 0);
}

static void run(struct server *server, struct request *base);
static const struct request_kind fence_kind = {run, drop};

static void run(struct server *server, struct request *base)
{
    struct fence_request *request = (struct fence_request *)base;
    if (server_is_alone(server)) {
        finish(request, PMIX_SUCCESS, request->bytes, request->length);
        return;
    }
    if (server->ops.fence == NULL) {
        free(request->bytes);
        finish(request, PMIX_ERR_NOT_SUPPORTED, NULL, 0);
        return;
    }
    struct pmix_member *members AUTO_FREE = mem_array(request->count + 1, sizeof(*members));
    for (size_t i = 0; i < request->count; i++) {
        bool every = request->procs[i].rank == PMIX_RANK_WILDCARD;
        members[i] = (struct pmix_member){request->procs[i].nspace,
                                          every ? PMIX_EVERY_RANK : (int)request->procs[i].rank};
    }
    uint64_t id = bridge_park(&server->bridge, base);
    /* The op may answer from inside, which frees the request. */
    pmix_proc_t *procs AUTO_FREE = request->procs;
    char *bytes AUTO_FREE = request->bytes;
    size_t length = request->length;
    request->procs = NULL;
    request->bytes = NULL;
    server->ops.fence(server->context, id, members, request->count, bytes, length);
}

void fence_reply(struct server *server, uint64_t id, bool ok, const void *bytes, size_t length)
{
    struct request *base = bridge_unpark(&server->bridge, id, &fence_kind);
    if (base == NULL)
        return;
    char *copy = ok && length > 0 ? mem_dup(bytes, length) : NULL;
    finish((struct fence_request *)base, ok ? PMIX_SUCCESS : PMIX_ERR_UNREACH, copy,
           copy != NULL ? length : 0);
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
    *request = (struct fence_request){.base = {.kind = &fence_kind},
                                      .procs = mem_dup(procs, nprocs * sizeof(*procs)),
                                      .count = nprocs,
                                      .bytes = ndata > 0 ? mem_dup(data, ndata) : NULL,
                                      .length = ndata,
                                      .done = done,
                                      .done_data = done_data};
    bridge_push(&server->bridge, &request->base);
    return PMIX_SUCCESS;
}
