/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/elastic/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
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

struct registered {
    uint8_t *bytes; /* NULL: none */
    size_t length;
};

/* A request that waits for its answer; its number in the core is its index + 1. */
struct rejoin_asker {
    bool waits;
    struct rendezvous_source source;
};

/* The first request of a newcomer. */
struct kept_request {
    int seat; /* -1: free */
    bool told;
    struct rendezvous_source source;
    char *key;
    void *body;
    size_t length;
};

struct elastic_rendezvous {
    struct job *job;
    struct elastic_hub *hub;
    struct registered *registrations; /* by seat */
    size_t seats;
    struct rejoin_asker *askers;
    size_t asker_count;
    uint64_t timestamp; /* of the last notification, seconds since 1970 */
    struct kept_request *kept;
    size_t kept_count;
    bool telling; /* the core hears of what is kept, at the end of the loop's turn */
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

static void keep_registration(struct elastic_rendezvous *own, int seat,
                              const struct rendezvous_request *request)
{
    if ((size_t)seat >= own->seats) {
        size_t seats = (size_t)seat + 1;
        own->registrations =
            mem_resize_array(own->registrations, seats, sizeof(*own->registrations));
        for (size_t i = own->seats; i < seats; i++)
            own->registrations[i] = (struct registered){NULL, 0};
        own->seats = seats;
    }
    struct registered *kept = &own->registrations[seat];
    free(kept->bytes);
    kept->bytes = mem_array(request->length + 1, 1);
    kept->length = request->length;
    if (request->length > 0)
        memcpy(kept->bytes, request->body, request->length);
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
    keep_registration(own, seat, request);
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
    if ((size_t)seat >= own->seats || own->registrations[seat].bytes == NULL)
        return;
    /* Workers ignore a notification that is not later than the one before. */
    uint64_t now = (uint64_t)(clock_wall_ns() / 1000000000);
    own->timestamp = now > own->timestamp ? now : own->timestamp + 1;
    Hvdrun__Notify message = HVDRUN__NOTIFY__INIT;
    message.seat = (uint32_t)seat;
    message.timestamp = own->timestamp;
    message.result = BOTH_ADDED_AND_REMOVED;
    message.registration.data = own->registrations[seat].bytes;
    message.registration.len = own->registrations[seat].length;
    struct node_link *node = own->job->nodes[elastic_worker_facts(core, seat).host];
    node_link_send(node, FRAME_NOTIFY, own->job->epoch, &message.base);
}

static void forget_registration(struct elastic_rendezvous *own, int seat)
{
    if ((size_t)seat >= own->seats)
        return;
    free(own->registrations[seat].bytes);
    own->registrations[seat] = (struct registered){NULL, 0};
}

/* Newcomers. */

static void clear(struct kept_request *kept)
{
    free(kept->key);
    free(kept->body);
    *kept = (struct kept_request){.seat = -1};
}

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

static struct kept_request *place_for(struct elastic_rendezvous *own, int seat)
{
    struct kept_request *found = NULL;
    for (size_t i = 0; i < own->kept_count; i++) {
        if (own->kept[i].seat == seat || (own->kept[i].seat < 0 && found == NULL))
            found = &own->kept[i];
        if (own->kept[i].seat == seat)
            break;
    }
    if (found == NULL) {
        own->kept = mem_resize_array(own->kept, own->kept_count + 1, sizeof(*own->kept));
        found = &own->kept[own->kept_count++];
        *found = (struct kept_request){.seat = -1};
    }
    return found;
}

static void tell(void *context)
{
    struct elastic_rendezvous *own = context;
    own->telling = false;
    for (size_t i = 0; i < own->kept_count; i++) {
        struct kept_request *kept = &own->kept[i];
        if (kept->seat < 0 || kept->told)
            continue;
        kept->told = true;
        elastic_hub_feed(own->hub,
                         &(struct elastic_event){.kind = ELASTIC_CAN_JOIN, .seat = kept->seat});
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
    struct kept_request *kept = place_for(own, seat);
    bool told = kept->seat == seat && kept->told; /* its client has sent it again */
    clear(kept);
    *kept = (struct kept_request){.seat = seat,
                                  .told = told,
                                  .source = source,
                                  .key = mem_strdup(request->key),
                                  .body = mem_array(request->length + 1, 1),
                                  .length = request->length};
    if (request->length > 0)
        memcpy(kept->body, request->body, request->length);
    if (!own->telling) /* the core may begin an epoch, which the caller does not expect */
        loop_defer(own->job->loop, tell, own);
    own->telling = true;
    return true;
}

void elastic_rendezvous_admit(struct elastic_rendezvous *own)
{
    const struct elastic *core = elastic_hub_core(own->hub);
    for (size_t i = 0; i < own->kept_count; i++) {
        struct kept_request *kept = &own->kept[i];
        if (kept->seat < 0 ||
            elastic_worker_facts(core, kept->seat).state != ELASTIC_WORKER_RUNNING)
            continue;
        struct rendezvous_request request = {.method = RENDEZVOUS_PUT,
                                             .scope = "global",
                                             .key = kept->key,
                                             .body = kept->length > 0 ? kept->body : NULL,
                                             .length = kept->length};
        job_rendezvous_again(own->job, kept->source, &request);
        clear(kept);
    }
}

/* The rendezvous. */

static void met(void *context)
{
    const struct elastic_parts *parts = elastic_parts_of(context);
    elastic_story_met(parts->story, elastic_facts(elastic_hub_core(parts->hub)),
                      job_running_ms(context));
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
    struct elastic_rendezvous *own = mem_alloc(sizeof(*own));
    *own = (struct elastic_rendezvous){.job = elastic_hub_job(hub), .hub = hub};
    job_rendezvous_take_elastic(own->job, &ops);
    return own;
}

void elastic_rendezvous_destroy(struct elastic_rendezvous *own)
{
    if (own == NULL)
        return;
    for (size_t i = 0; i < own->seats; i++)
        free(own->registrations[i].bytes);
    for (size_t i = 0; i < own->kept_count; i++)
        clear(&own->kept[i]);
    free(own->registrations);
    free(own->askers);
    free(own->kept);
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
    forget_registration(own, seat);
    for (size_t i = 0; i < own->kept_count; i++) {
        if (own->kept[i].seat == seat)
            clear(&own->kept[i]);
    }
    rank_gone(own, seat);
}

void elastic_rendezvous_node_lost(struct elastic_rendezvous *own, const struct node_link *node)
{
    const struct elastic *core = elastic_hub_core(own->hub);
    for (size_t i = 0; i < own->asker_count; i++) {
        if (own->askers[i].source.node == (uint32_t)node->index)
            own->askers[i].waits = false;
    }
    for (size_t i = 0; i < own->kept_count; i++) {
        if (own->kept[i].seat >= 0 && own->kept[i].source.node == (uint32_t)node->index)
            clear(&own->kept[i]);
    }
    for (int seat = 0; seat < elastic_seat_count(core); seat++) {
        struct elastic_worker_facts facts = elastic_worker_facts(core, seat);
        if (facts.state != ELASTIC_WORKER_FREE && facts.host == node->index)
            rank_gone(own, seat);
    }
}
