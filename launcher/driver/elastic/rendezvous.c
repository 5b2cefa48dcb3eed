/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/elastic/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/parse.h"
#include "driver/run/job_rendezvous.h"
#include "rendezvous/http.h"
#include "rendezvous/notification.h"
#include "rendezvous/store.h"

#define LOCAL_RANK_MAX 1000000
#define PLACE_TEXT_MAX 128
#define BOTH_ADDED_AND_REMOVED 3

/* How many requests of one node may wait. Each worker sends one, and another one after it gave
 * up waiting, perhaps before we know that. The limit stops an agent that sends requests without
 * end. */
#define ASKERS_OF_A_SEAT 2
#define ASKERS_LEAST 16

/* Bytes of a newcomer's body: a host name, or the addresses for each peer, of which Gloo needs 136
 * bytes. */
enum { BODY_LEAST = 4096, BODY_OF_PEER = 256 };

/* A request that waits for its answer; its number in the core is its index + 1. */
struct rejoin_asker {
    bool waits;
    struct rendezvous_source source;
};

/* The first request of a newcomer. */
struct first_request {
    char *key;
    void *body;
    size_t length;
    bool told;
    struct rendezvous_source source;
};

/* What the worker of a seat has sent: one of both, or both. */
struct sent {
    uint8_t *registration; /* NULL: none */
    size_t registration_length;
    struct first_request *first; /* NULL: it is not kept, or not any more */
};

struct elastic_rendezvous {
    struct job *job;
    struct elastic_hub *hub;
    struct map sent; /* struct sent, by seat */
    struct rejoin_asker *askers;
    size_t asker_count;
    uint64_t timestamp; /* of the last notification, seconds since 1970 */
    bool telling;       /* the core hears of what is kept, at the end of the loop's turn */
};

/* Workers that rejoin. */

static void reply(struct elastic_rendezvous *own, struct rendezvous_source source, int status,
                  const char *text)
{
    Hvdrun__KvReply message = HVDRUN__KV_REPLY__INIT;
    message.token = source.id;
    message.status = (uint32_t)status;
    message.body.data = (uint8_t *)text; /* protobuf-c only reads it */
    message.body.len = strlen(text);
    node_link_send(own->job->nodes[source.node], FRAME_KV_REPLY, own->job->epoch, &message.base);
}

/* "HOST:LOCAL_RANK". HOST is the host of the worker and may contain colons. -1: the text has
 * another form, or names another host than the one that asks. */
static int parse_key(const struct elastic_rendezvous *own, struct rendezvous_source source,
                     const char *key, int *local_rank)
{
    const char *colon = strrchr(key, ':');
    const char *host = own->job->nodes[source.node]->host;
    int64_t number = 0;
    if (colon == NULL || strlen(host) != (size_t)(colon - key) ||
        strncmp(host, key, (size_t)(colon - key)) != 0 ||
        parse_int(colon + 1, 0, LOCAL_RANK_MAX, &number, NULL) < 0)
        return -1;
    *local_rank = (int)number;
    return 0;
}

/* The live worker there; -1: none. */
static int find_seat(const struct elastic_rendezvous *own, int host, int local_rank)
{
    const struct elastic *core = elastic_hub_core(own->hub);
    for (int seat = 0; seat < elastic_seat_count(core); seat++) {
        struct elastic_worker_facts facts = elastic_worker_facts(core, seat);
        bool lives = facts.state != ELASTIC_WORKER_FREE && facts.state != ELASTIC_WORKER_EXITED;
        if (lives && facts.host == host && facts.local_rank == local_rank)
            return seat;
    }
    return -1;
}

static struct map_key key_of(int seat)
{
    return map_number((uint64_t)seat);
}

/* NULL: it has sent nothing that is kept. */
static struct sent *sent_by(const struct elastic_rendezvous *own, int seat)
{
    return map_get(&own->sent, key_of(seat));
}

static struct sent *make_sent(struct elastic_rendezvous *own, int seat)
{
    struct sent *sent = sent_by(own, seat);
    if (sent == NULL) {
        sent = mem_alloc(sizeof(*sent));
        map_put(&own->sent, key_of(seat), sent);
    }
    return sent;
}

static void drop_first(struct sent *sent)
{
    if (sent->first != NULL) {
        free(sent->first->key);
        free(sent->first->body);
    }
    mem_free_at(&sent->first);
}

static void sent_free(void *value)
{
    struct sent *sent = value;
    free(sent->registration);
    drop_first(sent);
    free(sent);
}

/* The newcomer has become a member, or its request cannot be answered. */
static void forget_first(struct elastic_rendezvous *own, int seat)
{
    struct sent *sent = sent_by(own, seat);
    drop_first(sent);
    if (sent->registration == NULL)
        free(map_remove(&own->sent, key_of(seat)));
}

static void *copy_body(const struct rendezvous_request *request)
{
    uint8_t *body = mem_alloc(request->length + 1);
    if (request->length > 0)
        memcpy(body, request->body, request->length);
    return body;
}

static bool may_ask(const struct elastic_rendezvous *own, struct rendezvous_source source)
{
    int seats = elastic_seat_count(elastic_hub_core(own->hub));
    size_t limit = ASKERS_LEAST + ASKERS_OF_A_SEAT * (size_t)seats, waiting = 0;
    for (size_t i = 0; i < own->asker_count; i++)
        waiting += own->askers[i].waits && own->askers[i].source.node == source.node;
    return waiting < limit;
}

static uint64_t add_asker(struct elastic_rendezvous *own, struct rendezvous_source source)
{
    size_t free_at = 0;
    while (free_at < own->asker_count && own->askers[free_at].waits)
        free_at++;
    if (free_at == own->asker_count)
        own->askers = mem_resize_array(own->askers, ++own->asker_count, sizeof(*own->askers));
    own->askers[free_at] = (struct rejoin_asker){true, source};
    return (uint64_t)free_at + 1;
}

static void register_worker(struct elastic_rendezvous *own, struct rendezvous_source source,
                            int local_rank, const struct rendezvous_request *request)
{
    int host = (int)source.node;
    int seat = find_seat(own, host, local_rank);
    reply(own, source, HTTP_OK, "");
    if (seat < 0)
        return; /* it is being terminated */
    struct sent *sent = make_sent(own, seat);
    free(sent->registration);
    sent->registration = copy_body(request);
    sent->registration_length = request->length;
    elastic_hub_feed(own->hub, &(struct elastic_event){.kind = ELASTIC_REGISTERED,
                                                       .host = host,
                                                       .local_rank = local_rank});
}

static void take_request(void *context, struct rendezvous_source source,
                         const struct rendezvous_request *request)
{
    struct elastic_rendezvous *own = elastic_parts_of(context)->rendezvous;
    int local_rank = 0;
    bool known = parse_key(own, source, request->key, &local_rank) == 0;
    bool registers =
        request->method == RENDEZVOUS_PUT && strcmp(request->scope, "worker_addresses") == 0;
    bool asks = request->method == RENDEZVOUS_GET && strcmp(request->scope, "rank_and_size") == 0;
    bool fits = !registers || request->length <= REGISTRATION_BODY_MAX;
    if (!known || !fits || (!registers && !asks)) {
        reply(own, source, HTTP_BAD_REQUEST, "");
        return;
    }
    if (registers) {
        register_worker(own, source, local_rank, request);
        return;
    }
    if (!may_ask(own, source)) {
        reply(own, source, HTTP_UNAVAILABLE, "");
        return;
    }
    struct elastic_event event = {.kind = ELASTIC_ASKED,
                                  .host = (int)source.node,
                                  .local_rank = local_rank,
                                  .request = add_asker(own, source)};
    elastic_hub_feed(own->hub, &event);
}

static void dropped(void *context, struct rendezvous_source source)
{
    struct elastic_rendezvous *own = elastic_parts_of(context)->rendezvous;
    for (size_t i = 0; i < own->asker_count; i++) {
        struct rejoin_asker *asker = &own->askers[i];
        if (!asker->waits || asker->source.node != source.node || asker->source.id != source.id)
            continue;
        asker->waits = false;
        elastic_hub_feed(own->hub,
                         &(struct elastic_event){.kind = ELASTIC_ASK_DROPPED, .request = i + 1});
    }
}

void elastic_rendezvous_answer(struct elastic_rendezvous *own, uint64_t request,
                               const struct elastic_plan *plan, const struct elastic_member *member)
{
    char text[PLACE_TEXT_MAX] = "-1,-1,-1,-1,-1,-1";
    if (request == 0 || request > own->asker_count || !own->askers[request - 1].waits)
        return;
    struct rejoin_asker *asker = &own->askers[request - 1];
    if (member != NULL)
        snprintf(text, sizeof(text), "%d,%d,%d,%d,%d,%d", member->rank, plan->size,
                 member->local_rank, member->local_size, member->cross_rank, member->cross_size);
    asker->waits = false;
    reply(own, asker->source, HTTP_OK, text);
}

void elastic_rendezvous_notify(struct elastic_rendezvous *own, int seat)
{
    const struct elastic *core = elastic_hub_core(own->hub);
    const struct sent *sent = sent_by(own, seat);
    if (sent == NULL || sent->registration == NULL)
        return;
    /* Workers ignore a notification that is not later than the one before. */
    uint64_t now = (uint64_t)(clock_wall_ns() / 1000000000);
    own->timestamp = now > own->timestamp ? now : own->timestamp + 1;
    Hvdrun__Notify message = HVDRUN__NOTIFY__INIT;
    message.seat = (uint32_t)seat;
    message.timestamp = own->timestamp;
    message.result = BOTH_ADDED_AND_REMOVED;
    message.registration.data = sent->registration;
    message.registration.len = sent->registration_length;
    struct node_link *node = own->job->nodes[elastic_worker_facts(core, seat).host];
    node_link_send(node, FRAME_NOTIFY, own->job->epoch, &message.base);
}

/* Newcomers. */

/* The rank that sends this first request: "rank_3", or "3" from an older Horovod. -1: it is
 * another request. */
static int rank_of(const struct rendezvous_request *request)
{
    static const char prefix[] = "rank_";
    const char *key = request->key;
    int64_t rank;
    if (strncmp(key, prefix, sizeof(prefix) - 1) == 0)
        key += sizeof(prefix) - 1;
    return rendezvous_key_is_index(key, &rank) ? (int)rank : -1;
}

/* The seat of the newcomer that has this rank on this host; -1: it comes from a member. Among the
 * ranks of one host, newcomers come after all members. */
static int seat_of(const struct elastic *core, int rank, int host)
{
    const struct elastic_plan *plan = elastic_newcomers(core);
    if (plan == NULL || rank < 0 || rank >= plan->size)
        return -1;
    const struct elastic_member *member = &plan->members[rank];
    if (!member->is_new || member->host != host)
        return -1;
    enum elastic_worker_state state = elastic_worker_facts(core, member->seat).state;
    bool waits = state == ELASTIC_WORKER_JOINING || state == ELASTIC_WORKER_READY;
    return waits ? member->seat : -1;
}

static void tell(void *context)
{
    struct elastic_rendezvous *own = context;
    own->telling = false;
    for (int seat = 0; seat < elastic_seat_count(elastic_hub_core(own->hub)); seat++) {
        struct sent *sent = sent_by(own, seat);
        if (sent == NULL || sent->first == NULL || sent->first->told)
            continue;
        sent->first->told = true;
        elastic_hub_feed(own->hub, &(struct elastic_event){.kind = ELASTIC_CAN_JOIN, .seat = seat});
    }
}

static bool joins(void *context, struct rendezvous_source source,
                  const struct rendezvous_request *request)
{
    struct elastic_rendezvous *own = elastic_parts_of(context)->rendezvous;
    const struct elastic *core = elastic_hub_core(own->hub);
    int seat = seat_of(core, rank_of(request), (int)source.node);
    if (seat < 0)
        return false;
    if (request->length > BODY_LEAST + BODY_OF_PEER * (size_t)elastic_newcomers(core)->size)
        return false;
    struct sent *sent = make_sent(own, seat);
    bool told = sent->first != NULL && sent->first->told; /* its client has sent it again */
    drop_first(sent);
    sent->first = mem_alloc(sizeof(*sent->first));
    *sent->first = (struct first_request){.key = mem_strdup(request->key),
                                          .body = copy_body(request),
                                          .length = request->length,
                                          .told = told,
                                          .source = source};
    if (!own->telling) /* the core may begin an epoch, which the caller does not expect */
        loop_defer(own->job->loop, tell, own);
    own->telling = true;
    return true;
}

void elastic_rendezvous_admit(struct elastic_rendezvous *own)
{
    const struct elastic *core = elastic_hub_core(own->hub);
    for (int seat = 0; seat < elastic_seat_count(core); seat++) {
        const struct sent *sent = sent_by(own, seat);
        if (sent == NULL || sent->first == NULL ||
            elastic_worker_facts(core, seat).state != ELASTIC_WORKER_RUNNING)
            continue;
        const struct first_request *first = sent->first;
        struct rendezvous_request request = {.method = RENDEZVOUS_PUT,
                                             .scope = "global",
                                             .key = first->key,
                                             .body = first->length > 0 ? first->body : NULL,
                                             .length = first->length};
        job_rendezvous_again(own->job, first->source, &request);
        forget_first(own, seat);
    }
}

/* The rendezvous. */

static void met(void *context)
{
    const struct elastic_parts *parts = elastic_parts_of(context);
    elastic_story_met(parts->story, elastic_facts(parts->core), job_running_ms(context));
}

static void stuck(void *context, int rank, bool at_gate)
{
    struct elastic_hub *hub = elastic_parts_of(context)->hub;
    const struct elastic_plan *plan = elastic_plan(elastic_hub_core(hub));
    if (plan != NULL && rank < plan->size)
        elastic_hub_feed(hub, &(struct elastic_event){.kind = ELASTIC_STUCK,
                                                      .seat = plan->members[rank].seat,
                                                      .first = at_gate});
}

struct elastic_rendezvous *elastic_rendezvous_create(struct elastic_hub *hub)
{
    static const struct rendezvous_store_ops ops = {.met = met,
                                                    .stuck = stuck,
                                                    .elastic = take_request,
                                                    .elastic_dropped = dropped,
                                                    .elastic_joins = joins};
    struct elastic_rendezvous *own =
        MEM_NEW((struct elastic_rendezvous){.job = elastic_hub_job(hub), .hub = hub});
    job_rendezvous_take_elastic(own->job, &ops);
    return own;
}

void elastic_rendezvous_destroy(struct elastic_rendezvous *own)
{
    if (own == NULL)
        return;
    map_clear(&own->sent, sent_free);
    free(own->askers);
    free(own);
}

/* Others wait for its rank. */
static void rank_gone(const struct elastic_rendezvous *own, int seat)
{
    struct elastic_worker_facts facts = elastic_worker_facts(elastic_hub_core(own->hub), seat);
    if (facts.member)
        job_rendezvous_rank_gone(own->job, facts.rank);
}

void elastic_rendezvous_exited(struct elastic_rendezvous *own, int seat)
{
    struct sent *sent = map_remove(&own->sent, key_of(seat));
    if (sent != NULL)
        sent_free(sent);
    rank_gone(own, seat);
}

void elastic_rendezvous_node_lost(struct elastic_rendezvous *own, const struct node_link *node)
{
    const struct elastic *core = elastic_hub_core(own->hub);
    for (size_t i = 0; i < own->asker_count; i++) {
        if (own->askers[i].source.node == (uint32_t)node->index)
            own->askers[i].waits = false;
    }
    for (int seat = 0; seat < elastic_seat_count(core); seat++) {
        const struct sent *sent = sent_by(own, seat);
        if (sent != NULL && sent->first != NULL &&
            sent->first->source.node == (uint32_t)node->index)
            forget_first(own, seat);
        struct elastic_worker_facts facts = elastic_worker_facts(core, seat);
        if (facts.state != ELASTIC_WORKER_FREE && facts.host == node->index)
            rank_gone(own, seat);
    }
}
