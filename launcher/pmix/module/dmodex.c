/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Direct modex: the data of one rank on another node, fetched when it is asked for. Both ways: our
 * workers ask (up_modex), and other nodes ask about our workers (modex_request).
 */
#include <stdlib.h>

#include "base/mem.h"
#include "pmix/module/operations.h"

struct modex_request {
    struct request base;
    pmix_proc_t proc;
    pmix_modex_cbfunc_t done;
    void *done_data;
};

static void finish(struct modex_request *request, pmix_status_t status, char *bytes, size_t length)
{
    request->done(status, bytes, length, request->done_data, free, bytes);
    free(request);
}

static void modex_drop(struct request *base)
{
    finish((struct modex_request *)base, PMIX_ERR_NOT_FOUND, NULL, 0);
}

static void modex_run(struct server *server, struct request *base);
static const struct request_kind modex_kind = {modex_run, modex_drop};

static void modex_run(struct server *server, struct request *base)
{
    struct modex_request *request = (struct modex_request *)base;
    int number = server_number(server, &request->proc);
    if (number < 0 || server_is_alone(server)) {
        /* On one node PMIx has all data itself, so what it asks for is nowhere. */
        finish(request, PMIX_ERR_NOT_FOUND, NULL, 0);
        return;
    }
    if (server->ops.modex == NULL) {
        finish(request, PMIX_ERR_NOT_SUPPORTED, NULL, 0);
        return;
    }
    uint64_t id = bridge_park(&server->bridge, base);
    server->ops.modex(server->context, id, number);
}

void modex_reply(struct server *server, uint64_t id, bool ok, const void *bytes, size_t length)
{
    struct request *base = bridge_unpark(&server->bridge, id, &modex_kind);
    if (base != NULL)
        finish((struct modex_request *)base, ok ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND,
               ok ? mem_dup(bytes, length) : NULL, ok ? length : 0);
}

pmix_status_t up_modex(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                       pmix_modex_cbfunc_t done, void *done_data)
{
    (void)info, (void)ninfo;
    struct server *server = server_active();
    if (server == NULL)
        return PMIX_ERR_NOT_SUPPORTED;
    struct modex_request *request = mem_alloc(sizeof(*request));
    *request = (struct modex_request){{.kind = &modex_kind}, *proc, done, done_data};
    bridge_push(&server->bridge, &request->base);
    return PMIX_SUCCESS;
}

/* The answer of the local library for another node. */
struct answer_request {
    struct request base;
    struct pmix_asker asker;
    bool ok;
    void *bytes;
    size_t length;
};

static void answer_drop(struct request *base)
{
    free(((struct answer_request *)base)->bytes);
    free(base);
}

static void answer_run(struct server *server, struct request *base)
{
    struct answer_request *answer = (struct answer_request *)base;
    if (server->ops.modex_answer != NULL)
        server->ops.modex_answer(server->context, answer->asker, answer->ok, answer->bytes,
                                 answer->length);
    answer_drop(base);
}

static const struct request_kind answer_kind = {answer_run, answer_drop};

static void push_answer(struct server *server, struct pmix_asker asker, bool ok, const void *bytes,
                        size_t length)
{
    struct answer_request *answer = mem_alloc(sizeof(*answer));
    *answer =
        (struct answer_request){{.kind = &answer_kind}, asker, ok, mem_dup(bytes, length), length};
    bridge_push(&server->bridge, &answer->base);
}

static void up_answer(pmix_status_t status, char *data, size_t length, void *context)
{
    struct pmix_asker *asker = context;
    struct server *server = server_active();
    if (server != NULL)
        push_answer(server, *asker, status == PMIX_SUCCESS, data,
                    data != NULL && status == PMIX_SUCCESS ? length : 0);
    free(asker);
}

void modex_request(struct server *server, struct pmix_asker asker, int number)
{
    const struct local *local = server_local(server, number);
    if (local == NULL) {
        push_answer(server, asker, false, NULL, 0);
        return;
    }
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, local->job->nspace, (pmix_rank_t)local->rank);
    struct pmix_asker *context = mem_dup(&asker, sizeof(asker));
    if (PMIx_server_dmodex_request(&proc, up_answer, context) == PMIX_SUCCESS)
        return;
    free(context);
    push_answer(server, asker, false, NULL, 0);
}
