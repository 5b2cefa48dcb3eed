/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's part of the store for torch.distributed: chooses the node that serves it. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/strv.h"
#include "driver/job/ask.h"
#include "driver/job/job_kind.h"
#include "driver/job/part.h"
#include "driver/tell/json_text.h"
#include "features/hang/places.h"
#include "features/stacks/look_driver.h"
#include "features/torch_store/torch_waits.h"

#define PERIOD_MS 5000
#define ANSWER_MS 5000
#define TEXT_MAX 8192
#define LOOK_MS 30000 /* between two looks at the rank that the others wait for */

const char torch_store_feature[] = "a store for torch.distributed, by an agent (--torch-store)";

struct torch_waits {
    struct job *job;
    struct loop_timer *tick;
    char *address; /* of the store; NULL: no agent serves it */
    uint32_t port;
    int node;              /* index in job->nodes */
    char *doubt;           /* why rank 0 should serve it; NULL: no reason is known */
    struct strv variables; /* for the workers */
    char *text;            /* what the last answers say; NULL: nothing lasts */
    json_t *table;         /* likewise */
    int absent;            /* the first rank that is not connected; -1: none is known */
    char *place;           /* where the last look has found it; NULL: unknown */
    int64_t looked_ms;
    struct places *places; /* while a look is read */
};

/* Rank 0 has another machine if possible: then no other rank feels it when rank 0's is lost. */
static uint32_t choose_node(const struct job *job)
{
    int first = job->plan->ranks[0].node;
    for (int i = 0; i < job->plan->node_count; i++) {
        const char *id = job->places[i]->hello->boot_id;
        if (strcmp(id, job->places[first]->hello->boot_id) != 0)
            return (uint32_t)i;
    }
    return (uint32_t)(first + 1 < job->plan->node_count ? first + 1 : 0);
}

/* What the user has said about MASTER_ADDR or MASTER_PORT holds; with "agent" it is checked. */
static enum set_torch_store wanted(const struct settings *settings)
{
    bool given = strv_env_get(&settings->env, "MASTER_ADDR") != NULL ||
                 strv_env_get(&settings->env, "MASTER_PORT") != NULL || settings->master_port != 0;
    enum set_torch_store who = (enum set_torch_store)settings->torch_store;
    return who == SET_TORCH_STORE_AUTO && given ? SET_TORCH_STORE_RANK0 : who;
}

static void prepare(const struct job *job, Hvdrun__Prepare *message)
{
    enum set_torch_store who = wanted(job->settings);
    bool joins = job->ports.master_addr != NULL; /* others that go on have a store already */
    if (who == SET_TORCH_STORE_RANK0 || joins)
        return;
    message->torch_store = who;
    message->torch_store_node = choose_node(job);
    if (who == SET_TORCH_STORE_AGENT) {
        message->torch_store_port = message->master_port;
        message->master_port = 0;
    }
}

static void take_ready(struct job *job, const struct node_link *node, const Hvdrun__Ready *ready)
{
    struct torch_waits *waits = job_part(job, torch_waits);
    if (waits == NULL)
        return;
    if (ready->torch_store_port != 0 && waits->address == NULL) {
        waits->port = ready->torch_store_port;
        waits->node = node->index;
        waits->address = mem_strdup(ready->address[0] != '\0' ? ready->address : "127.0.0.1");
        strv_printf(&waits->variables, "MASTER_ADDR=%s", waits->address);
        strv_printf(&waits->variables, "MASTER_PORT=%u", waits->port);
        strv_add(&waits->variables, "TORCHELASTIC_USE_AGENT_STORE=True");
    }
    if (ready->torch_store_doubt[0] != '\0' && waits->doubt == NULL)
        waits->doubt = mem_printf("%s: %s", node->host, ready->torch_store_doubt);
}

/* The store is used if no node objects. */
static bool is_served(const struct torch_waits *waits)
{
    return waits != NULL && waits->address != NULL && waits->doubt == NULL;
}

static void add_start(const struct job *job, Hvdrun__Start *message)
{
    const struct torch_waits *waits = job_part(job, torch_waits);
    if (!is_served(waits))
        return;
    message->variables = waits->variables.items;
    message->n_variables = waits->variables.count;
}

static void forget(struct torch_waits *waits)
{
    mem_free_at(&waits->text);
    json_decref(waits->table);
    waits->table = NULL;
}

static void forget_store(struct job *job)
{
    struct torch_waits *waits = job_part(job, torch_waits);
    if (waits == NULL)
        return;
    ask_forget(job, waits);
    forget(waits); /* it is not true of the next attempt */
    mem_free_at(&waits->place);
    waits->absent = -1;
    mem_free_at(&waits->address);
    mem_free_at(&waits->doubt);
    strv_destroy(&waits->variables);
}

/* Who waits */

static const Hvdrun__TorchWaits *answer_at(const struct ask *ask, size_t i)
{
    return (const Hvdrun__TorchWaits *)ask->answers[i].message;
}

/* The answer of the node that serves the store. */
static const Hvdrun__TorchWaits *store_answer(const struct torch_waits *waits,
                                              const struct ask *ask)
{
    for (size_t i = 0; i < ask->count; i++) {
        if (ask->answers[i].node->index == waits->node)
            return answer_at(ask, i);
    }
    return NULL;
}

/* The waits of the store's clients by "ADDRESS PORT". The table's owner frees its names. */
static void index_waits(const Hvdrun__TorchWaits *store, struct map *waits, struct strv *names)
{
    for (size_t i = 0; i < store->n_waits; i++) {
        char *name AUTO_FREE = mem_printf("%s %u", store->waits[i]->address, store->waits[i]->port);
        strv_add(names, name);
        map_put(waits, map_text(names->items[i]), store->waits[i]);
    }
}

static const Hvdrun__TorchWait *wait_of(const struct map *waits,
                                        const Hvdrun__TorchConnection *connection)
{
    char *name AUTO_FREE = mem_printf("%s %u", connection->address, connection->port);
    return map_get(waits, map_text(name));
}

/* What is known of the ranks that run, in the order of their seats. `*found`: clients that wait and
 * are known. */
static struct torch_rank *ranks_of(const struct ask *ask, const Hvdrun__TorchWaits *store,
                                   size_t *found)
{
    const struct job *job = ask->job;
    struct torch_rank *ranks = mem_array((size_t)job->ranks.size + 1, sizeof(*ranks));
    AUTO_STRV struct strv names = STRV_INIT;
    struct map waits = {NULL};
    index_waits(store, &waits, &names);
    for (size_t i = 0; i < ask->count; i++) {
        const struct node_link *node = ask->answers[i].node;
        const Hvdrun__TorchWaits *answer = answer_at(ask, i);
        for (int seat = 0; answer != NULL && answer->looked && seat < job->ranks.size; seat++)
            ranks[seat].known = ranks[seat].known || job->ranks.records[seat].node == node->index;
        for (size_t j = 0; answer != NULL && j < answer->n_hidden; j++) {
            if (job_seat_is_on(job, node, answer->hidden[j]))
                ranks[answer->hidden[j]].known = false;
        }
        for (size_t j = 0; answer != NULL && j < answer->n_connections; j++) {
            const Hvdrun__TorchConnection *connection = answer->connections[j];
            if (!job_seat_is_on(job, node, connection->seat))
                continue;
            struct torch_rank *rank = &ranks[connection->seat];
            const Hvdrun__TorchWait *wait = wait_of(&waits, connection);
            rank->known = rank->connected = true;
            if (wait == NULL)
                continue;
            ++*found;
            rank->key = wait->key;
            rank->more_keys = wait->keys > 0 ? wait->keys - 1 : 0;
            rank->waited_ms = (int64_t)wait->waited_ms;
        }
    }
    map_clear(&waits, NULL);
    return ranks;
}

/* Keeps those that run, and gives them their names. */
static size_t keep_running(const struct job *job, struct torch_rank *ranks)
{
    size_t kept = 0;
    for (int seat = 0; seat < job->ranks.size; seat++) {
        if (job->ranks.records[seat].state != RANK_RUNNING)
            continue;
        ranks[kept] = ranks[seat];
        ranks[kept].rank = job_seat_rank(job, seat);
        ranks[kept].host = job_seat_host(job, seat);
        kept++;
    }
    return kept;
}

static json_t *table_of(const struct job *job, const Hvdrun__TorchWaits *store,
                        const struct torch_rank *ranks, size_t count, const char *text)
{
    json_t *waits = json_array(), *absent = json_array();
    for (size_t i = 0; i < count; i++) {
        if (ranks[i].known && !ranks[i].connected)
            json_array_append_new(absent, json_integer(ranks[i].rank));
        if (ranks[i].key == NULL)
            continue;
        json_array_append_new(waits, json_pack("{s:i, s:o, s:I, s:f}", "rank", ranks[i].rank, "key",
                                               json_text(ranks[i].key), "more_keys",
                                               (json_int_t)ranks[i].more_keys, "seconds",
                                               (double)ranks[i].waited_ms / 1000));
    }
    const char *host = job->nodes[job_part(job, torch_waits)->node]->host;
    return json_pack("{s:o, s:o, s:I, s:o, s:o}", "text", json_text(text), "host", json_text(host),
                     "clients", (json_int_t)store->clients, "waits", waits, "not_connected",
                     absent);
}

static int first_absent(const struct torch_rank *ranks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (ranks[i].known && !ranks[i].connected)
            return ranks[i].rank;
    }
    return -1;
}

static void take_stack(void *context, int seat, const struct stack *stack)
{
    const struct torch_waits *waits = context;
    (void)seat;
    if (stack->rank == waits->absent)
        places_add(waits->places, stack);
}

static void looked(void *context, const struct ask *look)
{
    struct torch_waits *waits = context;
    waits->places = places_create();
    look_walk(look, take_stack, waits);
    places_find(waits->places);
    const struct program_place *place = places_of(waits->places, waits->absent);
    mem_free_at(&waits->place);
    if (place != NULL && place->where != NULL)
        waits->place =
            mem_printf("rank %d %s%s", waits->absent, place->calls ? "" : "is in ", place->where);
    places_destroy(waits->places);
    waits->places = NULL;
}

/* What has kept it may change, and a look costs all agents something. */
static void find_absent(struct torch_waits *waits, int rank, struct buf *text)
{
    int64_t now_ms = loop_now_ms(waits->job->loop);
    bool same = rank == waits->absent;
    waits->absent = rank;
    if (rank >= 0 && same && waits->place != NULL)
        buf_printf(text, "; %s", waits->place);
    if (rank < 0 || (same && now_ms - waits->looked_ms < LOOK_MS))
        return;
    waits->looked_ms = now_ms;
    look_ask(waits->job, LOOK_PYTHON, looked, waits);
}

static void all_answered(void *context, const struct ask *ask)
{
    struct torch_waits *waits = context;
    const Hvdrun__TorchWaits *store = store_answer(waits, ask);
    struct buf text AUTO_BUF = BUF_INIT(TEXT_MAX);
    size_t found = 0;
    forget(waits);
    if (store == NULL)
        return;
    struct torch_rank *ranks AUTO_FREE = ranks_of(ask, store, &found);
    size_t count = keep_running(waits->job, ranks);
    torch_waits_text(ranks, count, store->n_waits > found ? store->n_waits - found : 0, &text);
    if (text.length == 0)
        return;
    find_absent(waits, first_absent(ranks, count), &text);
    waits->text = mem_strdup(buf_text(&text));
    waits->table = table_of(waits->job, store, ranks, count, waits->text);
}

static const struct question question = {&topic_torch_waits, NULL, .keep = true};

/* Only if a client waits for long, the other nodes are asked, too. */
static void store_answered(void *context, const struct ask *ask)
{
    struct torch_waits *waits = context;
    const Hvdrun__TorchWaits *store = store_answer(waits, ask);
    Hvdrun__TorchWaitsRequest request = HVDRUN__TORCH_WAITS_REQUEST__INIT;
    bool lasts = false;
    for (size_t i = 0; store != NULL && i < store->n_waits; i++)
        lasts = lasts || store->waits[i]->waited_ms >= TORCH_WAITS_MS;
    if (!lasts) {
        forget(waits);
        return;
    }
    request.address = waits->address;
    request.port = waits->port;
    ask_all(waits->job, &question, &request.base, ANSWER_MS, all_answered, waits);
}

static void tick(void *context)
{
    struct torch_waits *waits = context;
    struct job *job = waits->job;
    const Hvdrun__TorchWaitsRequest request = HVDRUN__TORCH_WAITS_REQUEST__INIT;
    loop_timer_set(waits->tick, PERIOD_MS);
    if (job->state != JOB_RUNNING || job->times.paused_ms != 0 ||
        ask_is_open(job, &topic_torch_waits))
        return;
    struct node_link *node = is_served(waits) ? job->nodes[waits->node] : NULL;
    if (node != NULL && node_link_alive(node) && node->state == NODE_RUNNING)
        ask_node(ask_begin(job, &question, ANSWER_MS, store_answered, waits), node, &request.base);
    else
        forget(waits); /* what was known of another attempt is not true any more */
}

static int open_part(struct job *job, struct error *err)
{
    (void)err;
    if (!job->kind->has_workers || job->settings->torch_store == SET_TORCH_STORE_RANK0)
        return 0;
    struct torch_waits *waits = MEM_NEW((struct torch_waits){.job = job, .absent = -1});
    waits->tick = loop_timer_create(job->loop, tick, waits);
    loop_timer_set(waits->tick, PERIOD_MS);
    job->own[PART_torch_waits] = waits;
    return 0;
}

static void close_part(struct job *job)
{
    struct torch_waits *waits = job_part(job, torch_waits);
    forget_store(job);
    loop_timer_destroy(waits->tick);
    free(waits);
}

/* Beside what libhvd says of operations that wait. */
static void status(const struct job *job, json_t *root)
{
    const struct torch_waits *waits = job_part(job, torch_waits);
    if (waits == NULL || waits->text == NULL)
        return;
    json_array_append_new(json_object_get(root, "stalls"), json_text(waits->text));
    json_object_set(root, "torch_store", waits->table);
}

static void report(const struct job *job, json_t *root)
{
    const struct torch_waits *waits = job_part(job, torch_waits);
    if (waits != NULL && waits->table != NULL && job->verdict.status != 0)
        json_object_set(root, "torch_store", waits->table);
}

/* With the verdict: what lasted until the end began. */
static void tell(struct job *job)
{
    struct torch_waits *waits = job_part(job, torch_waits);
    if (waits == NULL || waits->text == NULL || job->verdict.status == 0)
        return;
    log_error(&job->log, "%s", waits->text);
    mem_free_at(&waits->text); /* once */
}

const struct driver_part torch_waits_part = {.name = "torch_waits",
                                             .open = open_part,
                                             .close = close_part,
                                             .prepare = prepare,
                                             .ready = take_ready,
                                             .start = add_start,
                                             .forget = forget_store,
                                             .status = status,
                                             .report = report,
                                             .tell = tell};
