/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix/module/collective.h"

#include <stdlib.h>

#include "base/mem.h"
#include "pmix/module/operations.h"

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

static int compare(const void *left, const void *right)
{
    int a = *(const int *)left;
    int b = *(const int *)right;
    return a < b ? -1 : a > b;
}

/* The ranks that take part, ascending; *count 0: all of the job. NULL: some are of another job. */
static int *participants(const struct server_job *job, const struct collective *collective,
                         size_t *count)
{
    int *ranks = mem_array(collective->count + 1, sizeof(*ranks));
    bool all = collective->count == 0;
    for (size_t i = 0; i < collective->count; i++) {
        const pmix_proc_t *proc = &collective->procs[i];
        bool every = proc->rank == PMIX_RANK_WILDCARD;
        if (!PMIX_CHECK_NSPACE(proc->nspace, job->nspace) ||
            (!every && proc->rank >= (pmix_rank_t)job->size)) {
            free(ranks);
            return NULL;
        }
        all = all || every;
        ranks[i] = every ? 0 : (int)proc->rank;
    }
    qsort(ranks, collective->count, sizeof(*ranks), compare);
    size_t kept = 0;
    for (size_t i = 0; i < collective->count; i++)
        if (kept == 0 || ranks[kept - 1] != ranks[i])
            ranks[kept++] = ranks[i];
    *count = all || kept == (size_t)job->size ? 0 : kept;
    return ranks;
}

void collective_begin(struct server *server, struct collective *collective)
{
    const struct server_job *job = server->job;
    if (job == NULL) {
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
    int *ranks AUTO_FREE = participants(job, collective, &count);
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
