/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix/module/operations.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void collective_init(struct collective *collective, const char *operation, const pmix_proc_t *procs,
                     size_t count, const char *bytes, size_t length)
{
    collective->operation = mem_strdup(operation);
    collective->procs = mem_dup(procs, count * sizeof(*procs));
    collective->count = count;
    collective->bytes = length > 0 ? mem_dup(bytes, length) : NULL;
    collective->length = length;
}

void collective_clear(struct collective *collective)
{
    free(collective->operation);
    free(collective->procs);
    free(collective->bytes);
}

static void fail(struct collective *collective, pmix_status_t status)
{
    collective->finish(collective, status, 0, NULL, 0);
}

static void run(struct server *server, struct request *base)
{
    collective_begin(server, (struct collective *)base);
}

static void drop(struct request *base)
{
    fail((struct collective *)base, PMIX_ERR_UNREACH);
}

static const struct request_kind collective_kind = {run, drop};

/* A process of the collective: how many ranks that is, and the number of the first. 0: unknown. */
static int ranks_of(const struct server *server, const pmix_proc_t *proc, int *first)
{
    const struct server_job *job = server_job_named(server, proc->nspace);
    bool every = proc->rank == PMIX_RANK_WILDCARD;
    *first = job == NULL ? -1 : every ? job->first : server_number(server, proc);
    return *first < 0 ? 0 : every ? job->size : 1;
}

enum { NOT_TAKEN, TAKEN, TAKEN_WITH_ALL };

/* Marks the ranks that take part, by number, in `taken`. false: some are of a namespace that is not
 * known here. */
static bool take(const struct server *server, const struct collective *collective, char *taken)
{
    for (size_t i = 0; i < collective->count; i++) {
        int first = 0, more = ranks_of(server, &collective->procs[i], &first);
        if (more == 0)
            return false;
        if (more > 1 && taken[first] != TAKEN_WITH_ALL)
            memset(taken + first, TAKEN_WITH_ALL, (size_t)more);
        else if (taken[first] == NOT_TAKEN)
            taken[first] = TAKEN;
    }
    return true;
}

/* The numbers of the ranks that take part, ascending; *count 0: all of the namespace of the first.
 * NULL: some are of a namespace that is not known here. */
static int *participants(const struct server *server, const struct collective *collective,
                         size_t *count)
{
    int end = 0;
    size_t kept = 0;
    for (const struct server_job *job = server->jobs; job != NULL; job = job->next)
        end = job->first + job->size > end ? job->first + job->size : end;
    char *taken AUTO_FREE = mem_array((size_t)end, sizeof(*taken));
    if (!take(server, collective, taken))
        return NULL;
    int *ranks = mem_array((size_t)end, sizeof(*ranks));
    for (int number = 0; number < end; number++)
        if (taken[number] != NOT_TAKEN)
            ranks[kept++] = number;
    const struct server_job *job = kept > 0 ? server_job_with(server, ranks[0]) : server->jobs;
    if (kept == 0)
        ranks[0] = job->first;
    bool whole = kept == 0 || (ranks[0] == job->first && kept == (size_t)job->size &&
                               ranks[kept - 1] == job->first + job->size - 1);
    *count = whole ? 0 : kept;
    return ranks;
}

void collective_begin(struct server *server, struct collective *collective)
{
    if (server->jobs == NULL) {
        fail(collective, PMIX_ERR_UNREACH);
        return;
    }
    if (server_is_alone(server)) {
        char *bytes = collective->bytes;
        collective->bytes = NULL;
        collective->finish(collective, PMIX_SUCCESS, ++server->last_round, bytes,
                           collective->length);
        return;
    }
    size_t count = 0;
    int *ranks AUTO_FREE = participants(server, collective, &count);
    if (ranks == NULL || server->ops.collect == NULL) {
        fail(collective, PMIX_ERR_NOT_SUPPORTED);
        return;
    }
    collective->base.kind = &collective_kind;
    uint64_t id = bridge_park(&server->bridge, &collective->base);
    /* The op may answer from inside, which frees the request. */
    char *operation AUTO_FREE = collective->operation;
    char *bytes AUTO_FREE = collective->bytes;
    size_t length = collective->length;
    collective->operation = NULL;
    collective->bytes = NULL;
    server->ops.collect(server->context, id, operation, ranks, count, bytes, length);
}

void collective_push(struct server *server, struct collective *collective)
{
    collective->base.kind = &collective_kind;
    bridge_push(&server->bridge, &collective->base);
}

void collect_reply(struct server *server, uint64_t id, bool ok, uint64_t round, const void *bytes,
                   size_t length)
{
    struct request *base = bridge_unpark(&server->bridge, id, &collective_kind);
    if (base == NULL)
        return;
    struct collective *collective = (struct collective *)base;
    char *copy = ok && length > 0 ? mem_dup(bytes, length) : NULL;
    collective->finish(collective, ok ? PMIX_SUCCESS : PMIX_ERR_UNREACH, round, copy,
                       copy != NULL ? length : 0);
}

/* ---- Fences ---------------------------------------------------------------------------------- */

/* The data of the local participants, if any, is one blob; the result is that of all. */
struct fence_request {
    struct collective collective;
    pmix_modex_cbfunc_t done;
    void *done_data;
};

/* The result's memory is PMIx's until it calls free on it. */
static void finish_fence(struct collective *collective, pmix_status_t status, uint64_t round,
                         char *bytes, size_t length)
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
    struct fence_request *request =
        MEM_NEW((struct fence_request){{.finish = finish_fence}, done, done_data});
    collective_init(&request->collective, "fence", procs, nprocs, data, ndata);
    collective_push(server, &request->collective);
    return PMIX_SUCCESS;
}

/* ---- Connect and disconnect ------------------------------------------------------------------ */

/*
 * PMIx_Connect and PMIx_Disconnect, among ranks of any namespace: all have to ask for it. What the
 * standard asks of us besides, to report the death of a member to the others, happens for every
 * rank anyway (events.c).
 */
struct connect_request {
    struct collective collective;
    pmix_op_cbfunc_t done;
    void *done_data;
};

static void finish_connect(struct collective *collective, pmix_status_t status, uint64_t round,
                           char *bytes, size_t length)
{
    (void)round, (void)length;
    struct connect_request *request = (struct connect_request *)collective;
    free(bytes);
    request->done(status, request->done_data);
    collective_clear(collective);
    free(request);
}

static pmix_status_t push_connect(const char *operation, const pmix_proc_t *procs, size_t count,
                                  pmix_op_cbfunc_t done, void *done_data)
{
    struct server *server = server_active();
    if (server == NULL)
        return PMIX_ERR_NOT_SUPPORTED;
    struct connect_request *request =
        MEM_NEW((struct connect_request){{.finish = finish_connect}, done, done_data});
    collective_init(&request->collective, operation, procs, count, NULL, 0);
    collective_push(server, &request->collective);
    return PMIX_SUCCESS;
}

pmix_status_t up_connect(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                         size_t ninfo, pmix_op_cbfunc_t done, void *done_data)
{
    (void)info, (void)ninfo;
    return push_connect("connect", procs, nprocs, done, done_data);
}

pmix_status_t up_disconnect(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                            size_t ninfo, pmix_op_cbfunc_t done, void *done_data)
{
    (void)info, (void)ninfo;
    return push_connect("disconnect", procs, nprocs, done, done_data);
}
