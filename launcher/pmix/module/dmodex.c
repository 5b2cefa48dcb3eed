/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Direct modex: the data of one rank on another node, fetched when it is asked for. Both ways: our
 * workers ask (up_modex), and other nodes ask about our workers (modex_request).
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "pmix/module/operations.h"

/* What waits for an answer of another node, or for one of the library. */
struct waiting {
    struct request base; /* parked */
    int64_t deadline_ms; /* monotonic; -1: none */
};

/* The library calls once for all ranks of the node that wait for the same one, and looks at no
 * limit itself: that of the first one counts for all. */
struct modex_request {
    struct waiting waiting;
    int timeout_s; /* that the rank has set; 0: none */
    pmix_proc_t proc;
    pmix_modex_cbfunc_t done;
    void *done_data;
};

static void note_deadline(struct server *server);

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
    if (request->timeout_s > 0) {
        request->waiting.deadline_ms = clock_mono_ms() + (int64_t)request->timeout_s * 1000;
        note_deadline(server);
    }
    server->ops.modex(server->context, id, number);
}

void modex_reply(struct server *server, uint64_t id, bool ok, const void *bytes, size_t length)
{
    struct request *base =
        bridge_unpark(&server->bridge, id, &modex_kind); /* its deadline may pass */
    if (base != NULL)
        finish((struct modex_request *)base, ok ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND,
               ok ? mem_dup(bytes, length) : NULL, ok ? length : 0);
}

pmix_status_t up_modex(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                       pmix_modex_cbfunc_t done, void *done_data)
{
    struct server *server = server_active();
    if (server == NULL)
        return PMIX_ERR_NOT_SUPPORTED;
    int64_t timeout = infos_number(info, ninfo, PMIX_TIMEOUT, 0);
    struct modex_request *request =
        MEM_NEW((struct modex_request){{{.kind = &modex_kind}, -1},
                                       timeout > 0 && timeout < INT32_MAX ? (int)timeout : 0,
                                       *proc,
                                       done,
                                       done_data});
    bridge_push(&server->bridge, &request->waiting.base);
    return PMIX_SUCCESS;
}

/*
 * Another node asks. The library answers when the rank has committed something, which may take as
 * long as the rank lives. If the rank ends before, nobody would answer, so we do, a moment later:
 * what it has committed last may still be on its way.
 */
#define LAST_WORDS_MS 1000

struct ask {
    struct waiting waiting;
    struct pmix_asker asker;
    int number; /* the rank that is asked for */
};

static void ask_drop(struct request *base)
{
    free(base);
}

static const struct request_kind ask_kind = {NULL, ask_drop};

static void ask_answer(struct server *server, uint64_t id, bool ok, const void *bytes,
                       size_t length)
{
    struct ask *ask = (struct ask *)bridge_unpark(&server->bridge, id, &ask_kind);
    if (ask != NULL && server->ops.modex_answer != NULL)
        server->ops.modex_answer(server->context, ask->asker, ok, bytes, length);
    free(ask);
}

/* The next that waits, after `last` or from the first one on; NULL: no more. */
static struct waiting *next_waiting(const struct server *server, const struct waiting *last)
{
    struct request *at = last == NULL ? server->bridge.parked : last->base.next;
    while (at != NULL && at->kind != &ask_kind && at->kind != &modex_kind)
        at = at->next;
    return (struct waiting *)at;
}

/* The next deadline of all that waits. */
static void note_deadline(struct server *server)
{
    server->modex_deadline_ms = -1;
    for (const struct waiting *at = next_waiting(server, NULL); at != NULL;
         at = next_waiting(server, at))
        if (at->deadline_ms >= 0 &&
            (server->modex_deadline_ms < 0 || at->deadline_ms < server->modex_deadline_ms))
            server->modex_deadline_ms = at->deadline_ms;
    server_arm_timer(server);
}

void modex_expire(struct server *server, int64_t now_ms)
{
    struct waiting *next = NULL;
    for (struct waiting *at = next_waiting(server, NULL); at != NULL; at = next) {
        next = next_waiting(server, at);
        if (at->deadline_ms < 0 || at->deadline_ms > now_ms)
            continue;
        if (at->base.kind == &ask_kind)
            ask_answer(server, at->base.id, false, NULL, 0);
        else if (bridge_unpark(&server->bridge, at->base.id, &modex_kind) != NULL)
            finish((struct modex_request *)at, PMIX_ERR_TIMEOUT, NULL, 0);
    }
    note_deadline(server);
}

void modex_worker_ended(struct server *server, const struct local *local)
{
    for (struct waiting *at = next_waiting(server, NULL); at != NULL; at = next_waiting(server, at))
        if (at->base.kind == &ask_kind && ((struct ask *)at)->number == local_number(local))
            at->deadline_ms = clock_mono_ms() + LAST_WORDS_MS;
    note_deadline(server);
}

/* The answer of the local library. */
struct answer_request {
    struct request base;
    uint64_t ask;
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
    ask_answer(server, answer->ask, answer->ok, answer->bytes, answer->length);
    answer_drop(base);
}

static const struct request_kind answer_kind = {answer_run, answer_drop};

static void push_answer(struct server *server, uint64_t ask, bool ok, const void *bytes,
                        size_t length)
{
    struct answer_request *answer = MEM_NEW(
        (struct answer_request){{.kind = &answer_kind}, ask, ok, mem_dup(bytes, length), length});
    bridge_push(&server->bridge, &answer->base);
}

static void up_answer(pmix_status_t status, char *data, size_t length, void *context)
{
    uint64_t *ask = context;
    struct server *server = server_active();
    if (server != NULL)
        push_answer(server, *ask, status == PMIX_SUCCESS, data,
                    data != NULL && status == PMIX_SUCCESS ? length : 0);
    free(ask);
}

void modex_request(struct server *server, struct pmix_asker asker, int number)
{
    const struct local *local = server_local(server, number);
    struct ask *ask = MEM_NEW((struct ask){{{.kind = &ask_kind}, -1}, asker, number});
    uint64_t id = bridge_park(&server->bridge, &ask->waiting.base);
    if (local == NULL) {
        ask_answer(server, id, false, NULL, 0);
        return;
    }
    if (local->ended) {
        ask->waiting.deadline_ms = clock_mono_ms() + LAST_WORDS_MS;
        note_deadline(server);
    }
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, local->job->nspace, (pmix_rank_t)local->rank);
    uint64_t *context = mem_dup(&id, sizeof(id));
    if (PMIx_server_dmodex_request(&proc, up_answer, context) == PMIX_SUCCESS)
        return;
    free(context);
    ask_answer(server, id, false, NULL, 0);
}
