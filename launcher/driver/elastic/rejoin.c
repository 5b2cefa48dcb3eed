/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/elastic/rejoin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"
#include "rendezvous/http.h"
#include "rendezvous/notification.h"

#define LOCAL_RANK_MAX 1000000
#define PLACE_TEXT_MAX 128
#define BOTH_ADDED_AND_REMOVED 3

/* How many requests of one node may wait. Each worker sends one, and another one after it gave
 * up waiting, perhaps before we know that. The limit stops an agent that sends requests without
 * end. */
#define ASKERS_OF_A_SEAT 2
#define ASKERS_LEAST 16

struct kept {
    uint8_t *bytes; /* NULL: none */
    size_t length;
};

/* A request that waits for its answer; its number in the core is its index + 1. */
struct rejoin_asker {
    bool waits;
    struct rendezvous_source source;
};

struct elastic_rejoin {
    struct job *job;
    struct elastic_hub *hub;
    struct kept *registrations; /* by seat */
    size_t seats;
    struct rejoin_asker *askers;
    size_t count;
    uint64_t timestamp; /* of the last notification, seconds since 1970 */
};

struct elastic_rejoin *elastic_rejoin_create(struct elastic_hub *hub)
{
    struct elastic_rejoin *rejoin = mem_alloc(sizeof(*rejoin));
    *rejoin = (struct elastic_rejoin){.job = elastic_hub_job(hub), .hub = hub};
    return rejoin;
}

void elastic_rejoin_destroy(struct elastic_rejoin *rejoin)
{
    if (rejoin == NULL)
        return;
    for (size_t i = 0; i < rejoin->seats; i++)
        free(rejoin->registrations[i].bytes);
    free(rejoin->registrations);
    free(rejoin->askers);
    free(rejoin);
}

static void reply(struct elastic_rejoin *rejoin, struct rendezvous_source source, int status,
                  const char *text)
{
    Hvdrun__KvReply message = HVDRUN__KV_REPLY__INIT;
    message.token = source.id;
    message.status = (uint32_t)status;
    message.body.data = (uint8_t *)text; /* protobuf-c only reads it */
    message.body.len = strlen(text);
    node_link_send(rejoin->job->nodes[source.node], FRAME_KV_REPLY, rejoin->job->epoch,
                   &message.base);
}

/* "HOST:LOCAL_RANK". HOST is the host of the worker and may contain colons. -1: the text has
 * another form, or names another host than the one that asks. */
static int parse_key(const struct elastic_rejoin *rejoin, struct rendezvous_source source,
                     const char *key, int *local_rank)
{
    const char *colon = strrchr(key, ':');
    const char *host = rejoin->job->nodes[source.node]->host;
    int64_t number = 0;
    if (colon == NULL || strlen(host) != (size_t)(colon - key) ||
        strncmp(host, key, (size_t)(colon - key)) != 0 ||
        parse_int(colon + 1, 0, LOCAL_RANK_MAX, &number, NULL) < 0)
        return -1;
    *local_rank = (int)number;
    return 0;
}

/* The live worker there; -1: none. */
static int find_seat(const struct elastic_rejoin *rejoin, int host, int local_rank)
{
    const struct elastic *core = elastic_hub_core(rejoin->hub);
    for (int seat = 0; seat < elastic_seat_count(core); seat++) {
        struct elastic_worker_facts facts = elastic_worker_facts(core, seat);
        bool lives = facts.state != ELASTIC_WORKER_FREE && facts.state != ELASTIC_WORKER_EXITED;
        if (lives && facts.host == host && facts.local_rank == local_rank)
            return seat;
    }
    return -1;
}

static void keep_registration(struct elastic_rejoin *rejoin, int seat,
                              const struct rendezvous_request *request)
{
    if ((size_t)seat >= rejoin->seats) {
        size_t seats = (size_t)seat + 1;
        rejoin->registrations =
            mem_resize_array(rejoin->registrations, seats, sizeof(*rejoin->registrations));
        for (size_t i = rejoin->seats; i < seats; i++)
            rejoin->registrations[i] = (struct kept){NULL, 0};
        rejoin->seats = seats;
    }
    struct kept *kept = &rejoin->registrations[seat];
    free(kept->bytes);
    kept->bytes = mem_array(request->length + 1, 1);
    kept->length = request->length;
    if (request->length > 0)
        memcpy(kept->bytes, request->body, request->length);
}

static bool may_ask(const struct elastic_rejoin *rejoin, struct rendezvous_source source)
{
    int seats = elastic_seat_count(elastic_hub_core(rejoin->hub));
    size_t limit = ASKERS_LEAST + ASKERS_OF_A_SEAT * (size_t)seats, waiting = 0;
    for (size_t i = 0; i < rejoin->count; i++)
        waiting += rejoin->askers[i].waits && rejoin->askers[i].source.node == source.node;
    return waiting < limit;
}

static uint64_t add_asker(struct elastic_rejoin *rejoin, struct rendezvous_source source)
{
    size_t free_at = 0;
    while (free_at < rejoin->count && rejoin->askers[free_at].waits)
        free_at++;
    if (free_at == rejoin->count)
        rejoin->askers = mem_resize_array(rejoin->askers, ++rejoin->count, sizeof(*rejoin->askers));
    rejoin->askers[free_at] = (struct rejoin_asker){true, source};
    return (uint64_t)free_at + 1;
}

static void register_worker(struct elastic_rejoin *rejoin, struct rendezvous_source source,
                            int local_rank, const struct rendezvous_request *request)
{
    int host = (int)source.node;
    int seat = find_seat(rejoin, host, local_rank);
    reply(rejoin, source, HTTP_OK, "");
    if (seat < 0)
        return; /* it is being terminated */
    keep_registration(rejoin, seat, request);
    elastic_hub_feed(rejoin->hub, &(struct elastic_event){.kind = ELASTIC_REGISTERED,
                                                          .host = host,
                                                          .local_rank = local_rank});
}

void elastic_rejoin_request(struct elastic_rejoin *rejoin, struct rendezvous_source source,
                            const struct rendezvous_request *request)
{
    int local_rank = 0;
    bool known = parse_key(rejoin, source, request->key, &local_rank) == 0;
    bool registers =
        request->method == RENDEZVOUS_PUT && strcmp(request->scope, "worker_addresses") == 0;
    bool asks = request->method == RENDEZVOUS_GET && strcmp(request->scope, "rank_and_size") == 0;
    bool fits = !registers || request->length <= REGISTRATION_BODY_MAX;
    if (!known || !fits || (!registers && !asks)) {
        reply(rejoin, source, HTTP_BAD_REQUEST, "");
        return;
    }
    if (registers) {
        register_worker(rejoin, source, local_rank, request);
        return;
    }
    if (!may_ask(rejoin, source)) {
        reply(rejoin, source, HTTP_UNAVAILABLE, "");
        return;
    }
    struct elastic_event event = {.kind = ELASTIC_ASKED,
                                  .host = (int)source.node,
                                  .local_rank = local_rank,
                                  .request = add_asker(rejoin, source)};
    elastic_hub_feed(rejoin->hub, &event);
}

void elastic_rejoin_dropped(struct elastic_rejoin *rejoin, struct rendezvous_source source)
{
    for (size_t i = 0; i < rejoin->count; i++) {
        struct rejoin_asker *asker = &rejoin->askers[i];
        if (!asker->waits || asker->source.node != source.node || asker->source.id != source.id)
            continue;
        asker->waits = false;
        elastic_hub_feed(rejoin->hub,
                         &(struct elastic_event){.kind = ELASTIC_ASK_DROPPED, .request = i + 1});
    }
}

void elastic_rejoin_node_lost(struct elastic_rejoin *rejoin, const struct node_link *node)
{
    for (size_t i = 0; i < rejoin->count; i++) {
        if (rejoin->askers[i].source.node == (uint32_t)node->index)
            rejoin->askers[i].waits = false;
    }
}

void elastic_rejoin_answer(struct elastic_rejoin *rejoin, uint64_t request,
                           const struct elastic_plan *plan, const struct elastic_member *member)
{
    char text[PLACE_TEXT_MAX] = "-1,-1,-1,-1,-1,-1";
    if (request == 0 || request > rejoin->count || !rejoin->askers[request - 1].waits)
        return;
    struct rejoin_asker *asker = &rejoin->askers[request - 1];
    if (member != NULL)
        snprintf(text, sizeof(text), "%d,%d,%d,%d,%d,%d", member->rank, plan->size,
                 member->local_rank, member->local_size, member->cross_rank, member->cross_size);
    asker->waits = false;
    reply(rejoin, asker->source, HTTP_OK, text);
}

void elastic_rejoin_notify(struct elastic_rejoin *rejoin, int seat)
{
    const struct elastic *core = elastic_hub_core(rejoin->hub);
    if ((size_t)seat >= rejoin->seats || rejoin->registrations[seat].bytes == NULL)
        return;
    /* Workers ignore a notification that is not later than the one before. */
    uint64_t now = (uint64_t)(clock_wall_ns() / 1000000000);
    rejoin->timestamp = now > rejoin->timestamp ? now : rejoin->timestamp + 1;
    Hvdrun__Notify message = HVDRUN__NOTIFY__INIT;
    message.seat = (uint32_t)seat;
    message.timestamp = rejoin->timestamp;
    message.result = BOTH_ADDED_AND_REMOVED;
    message.registration.data = rejoin->registrations[seat].bytes;
    message.registration.len = rejoin->registrations[seat].length;
    struct node_link *node = rejoin->job->nodes[elastic_worker_facts(core, seat).host];
    node_link_send(node, FRAME_NOTIFY, rejoin->job->epoch, &message.base);
}

void elastic_rejoin_forget(struct elastic_rejoin *rejoin, int seat)
{
    if ((size_t)seat >= rejoin->seats)
        return;
    free(rejoin->registrations[seat].bytes);
    rejoin->registrations[seat] = (struct kept){NULL, 0};
}
