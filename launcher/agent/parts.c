/* SPDX-License-Identifier: Apache-2.0 */
/* The composing page of the agent: all its parts, and those that need no file of their own. */
#include "agent/part.h"

#include <stdlib.h>
#include <string.h>

#include "agent/agent_state.h"
#include "agent/crew_config.h"
#include "agent/notifier.h"
#include "agent/progress.h"
#include "agent/worker_lines.h"
#include "base/mem.h"
#include "io/loop.h"
#include "line/line.h"
#include "rendezvous/http.h"
#include "rendezvous/proxy.h"
#include "rendezvous/server.h"

/* Questions */

const struct ask_rule *asked_rule(const struct ask_rule *rule, const Hvdrun__Ask *message)
{
    while (rule->topic != NULL && rule->topic->number != message->topic)
        rule++;
    return rule->topic == NULL ? NULL : rule;
}

const char *asked_take(const struct ask_rule *rule, struct agent *agent, const struct post *post,
                       const Hvdrun__Ask *message)
{
    const struct asked asked = {post, message->question};
    ProtobufCMessage *request =
        message_read(rule->topic->request, message->request.data, message->request.len);
    if (request == NULL)
        return "ASK has a request that cannot be read";
    rule->answer(agent, &asked, request);
    message_free(request);
    return NULL;
}

/* All parts */

/* NULL: its feature was left out. */
static const struct agent_part *const parts[AGENT_PARTS] = {
#define PART(name) [AGENT_PART_##name] = &name##_agent_part,
#include "agent/part_list.def"
};

static const struct agent_part *next(int *at)
{
    while (*at < AGENT_PARTS) {
        const struct agent_part *part = parts[(*at)++];
        if (part != NULL)
            return part;
    }
    return NULL;
}

#define EACH_PART(part)                               \
    int next_part = 0;                                \
    const struct agent_part *part = next(&next_part); \
    for (; part != NULL; part = next(&next_part))

void agent_parts_open(struct agent *agent)
{
    EACH_PART (part) {
        if (part->open != NULL)
            part->open(agent);
    }
}

void agent_parts_close(struct agent *agent)
{
    for (int i = AGENT_PARTS - 1; i >= 0; i--) {
        if (agent->own[i] != NULL)
            parts[i]->close(agent);
        agent->own[i] = NULL;
    }
}

void agent_parts_adapt(struct agent *agent, Hvdrun__Prepare *prepare)
{
    EACH_PART (part) {
        if (part->adapt != NULL)
            part->adapt(agent, prepare);
    }
}

void agent_parts_crew(struct agent *agent, struct crew_config *config,
                      const Hvdrun__Prepare *prepare, bool joins)
{
    EACH_PART (part) {
        if (part->crew != NULL)
            part->crew(agent, config, prepare, joins);
    }
}

void agent_parts_epoch(struct agent *agent, uint32_t epoch)
{
    EACH_PART (part) {
        if (part->epoch != NULL && agent->own[next_part - 1] != NULL)
            part->epoch(agent, epoch);
    }
}

void agent_parts_stranger(struct agent *agent, const struct reaper_exit *exit)
{
    EACH_PART (part) {
        if (part->stranger != NULL && agent->own[next_part - 1] != NULL)
            part->stranger(agent, exit);
    }
}

const char *agent_parts_ask(struct agent *agent, const Hvdrun__Ask *message)
{
    EACH_PART (part) {
        const struct ask_rule *rule =
            part->topics == NULL ? NULL : asked_rule(part->topics, message);
        if (rule != NULL)
            return asked_take(rule, agent, &agent->post, message);
    }
    return "ASK has a topic that is not known";
}

const struct agent_order *agent_parts_order(uint8_t type)
{
    EACH_PART (part) {
        const struct agent_order *order = part->orders;
        for (; order != NULL && order->type != 0; order++) {
            if (order->type == type)
                return order;
        }
    }
    return NULL;
}

/*
 * What the workers of a node share, as parts of the agent: the rendezvous, the status endpoint, the
 * lines to libhvd, and the news about hosts. They are made for the first crew, and then serve all.
 * While older crews go on, EPOCH says when they leave their epoch.
 */

/*
 * The rendezvous of this node: HTTP on loopback for our workers, frames to the driver. It belongs
 * to one epoch at a time, whatever epoch the workers were started in.
 */

/* Of the link to the driver: a flood of requests must not be what fills it up. */
#define QUEUE_MAX (LINK_QUEUE_MAX / 2)

struct rendezvous_door {
    struct post post; /* under the epoch of the door */
    struct rendezvous_server *server;
    struct rendezvous_proxy *proxy;
    struct progress_desk *status; /* for POST requests; NULL: none */
};

/* At once, always: a training step waits for the answer. */
static void answer_post(struct rendezvous_door *door, uint64_t token,
                        const struct rendezvous_request *request)
{
    char *body AUTO_FREE = NULL;
    int status = HTTP_NOT_FOUND;
    if (door->status != NULL)
        status = progress_desk_post(door->status, request, &body);
    rendezvous_server_reply(door->server, token, status, body, body == NULL ? 0 : strlen(body));
}

static void server_request(void *context, uint64_t token, const struct rendezvous_request *request)
{
    struct rendezvous_door *door = context;
    const struct link *link = post_link(&door->post);
    if (request->method == RENDEZVOUS_POST)
        answer_post(door, token, request);
    else if (link != NULL && link_queued(link) > QUEUE_MAX) /* the clients come again */
        rendezvous_server_reply(door->server, token, HTTP_UNAVAILABLE, NULL, 0);
    else
        rendezvous_proxy_request(door->proxy, token, request);
}

static void server_dropped(void *context, uint64_t token)
{
    struct rendezvous_door *door = context;
    rendezvous_proxy_dropped(door->proxy, token);
}

static void server_starved(void *context, int errnum)
{
    struct rendezvous_door *door = context;
    char text[128];
    log_warning(&door->post.log,
                "workers wait: their connections to the rendezvous cannot be accepted: %s",
                strerror_r(errnum, text, sizeof(text)));
}

static void proxy_ask(void *context, uint64_t id, const struct rendezvous_request *request)
{
    struct rendezvous_door *door = context;
    Hvdrun__KvRequest message = HVDRUN__KV_REQUEST__INIT;
    message.token = id;
    message.method = (uint32_t)request->method;
    message.scope = (char *)request->scope; /* protobuf-c only reads them */
    message.key = (char *)request->key;
    message.body.data = (uint8_t *)request->body;
    message.body.len = request->length;
    post_message(&door->post, FRAME_KV_REQUEST, &message.base);
}

static void proxy_cancel(void *context, uint64_t id)
{
    struct rendezvous_door *door = context;
    Hvdrun__KvNotice message = HVDRUN__KV_NOTICE__INIT;
    message.token = id;
    post_message(&door->post, FRAME_KV_DROPPED, &message.base);
}

static void proxy_answer(void *context, uint64_t token, int status, const void *body, size_t length)
{
    struct rendezvous_door *door = context;
    rendezvous_server_reply(door->server, token, status, body, length);
}

static void door_destroy(struct rendezvous_door *door)
{
    if (door == NULL)
        return;
    rendezvous_server_destroy(door->server);
    rendezvous_proxy_destroy(door->proxy);
    free(door);
}

/* NULL: no socket could be opened. */
static struct rendezvous_door *door_create(struct loop *loop, const struct post *post,
                                           struct error *err)
{
    static const struct rendezvous_server_ops server_ops = {
        .request = server_request, .dropped = server_dropped, .starved = server_starved};
    static const struct rendezvous_proxy_ops proxy_ops = {
        .ask = proxy_ask, .cancel = proxy_cancel, .answer = proxy_answer};
    struct rendezvous_door *door = mem_alloc(sizeof(*door));
    post_init_part(&door->post, post, post->epoch);
    door->proxy = rendezvous_proxy_create(&proxy_ops, door, RENDEZVOUS_CACHE_MAX);
    door->server = rendezvous_server_create(loop, &server_ops, door, err);
    if (door->server == NULL) {
        door_destroy(door);
        return NULL;
    }
    return door;
}

static void door_begin(struct rendezvous_door *door, uint32_t epoch)
{
    if (door->post.epoch == epoch)
        return; /* what was learnt since then holds */
    door->post.epoch = epoch;
    rendezvous_proxy_begin(door->proxy);
}

/* Limits what it stores to what `size` workers can need, `local_size` of them on this node. */
static void door_expect(struct rendezvous_door *door, uint32_t size, uint32_t local_size)
{
    uint64_t need = rendezvous_memory_need(size);
    rendezvous_proxy_limit(door->proxy, need < RENDEZVOUS_CACHE_MAX ? need : RENDEZVOUS_CACHE_MAX);
    rendezvous_server_expect(door->server, local_size < size ? need / size * local_size : need);
}

static void rendezvous_crew(struct agent *agent, struct crew_config *config,
                            const Hvdrun__Prepare *prepare, bool joins)
{
    struct error err = ERROR_INIT;
    struct rendezvous_door *door = agent_own(agent, rendezvous_door);
    if (door == NULL)
        door = door_create(agent->loop, &agent->post, &err);
    agent->own[AGENT_PART_rendezvous_door] = door;
    if (door == NULL) {
        log_warning(&agent->post.log, "no rendezvous for Horovod and no status endpoint: %s",
                    err.text);
        return;
    }
    if (prepare->first_seat == 0) /* not for a world that a rank has spawned */
        door_expect(door, prepare->size, prepare->local_size);
    if (!joins)
        door_begin(door, config->epoch);
    config->rendezvous_port = rendezvous_server_port(door->server);
}

static void rendezvous_epoch(struct agent *agent, uint32_t epoch)
{
    door_begin(agent_own(agent, rendezvous_door), epoch);
}

static void rendezvous_reply(struct agent *agent, const struct frame_header *header,
                             const void *body)
{
    struct rendezvous_door *door = agent_own(agent, rendezvous_door);
    const Hvdrun__KvReply *message = body;
    (void)header;
    if (door != NULL)
        rendezvous_proxy_reply(door->proxy, message->token, (int)message->status,
                               message->body.data, message->body.len);
}

static void rendezvous_close(struct agent *agent)
{
    door_destroy(agent_own(agent, rendezvous_door));
}

static const struct agent_order rendezvous_orders[] = {
    {FRAME_KV_REPLY, &hvdrun__kv_reply__descriptor, rendezvous_reply}, {0}};
const struct agent_part rendezvous_door_agent_part = {.name = "rendezvous_door",
                                                      .orders = rendezvous_orders,
                                                      .crew = rendezvous_crew,
                                                      .epoch = rendezvous_epoch,
                                                      .close = rendezvous_close};

/* What workers say of their progress, and the status endpoint, at the server of the rendezvous */

static bool has_seat(void *context, uint32_t epoch, uint32_t seat)
{
    const struct agent *agent = context;
    const struct crew *crew = crews_find(agent->crews, epoch);
    return crew != NULL && crew_has_seat(crew, seat);
}

static void progress_crew(struct agent *agent, struct crew_config *config,
                          const Hvdrun__Prepare *prepare, bool joins)
{
    struct rendezvous_door *rendezvous = agent_own(agent, rendezvous_door);
    (void)prepare, (void)joins;
    if (agent_own(agent, progress_desk) == NULL)
        agent->own[AGENT_PART_progress_desk] =
            progress_desk_create(agent->loop, &agent->post, has_seat, agent);
    config->progress_desk = agent_own(agent, progress_desk);
    if (rendezvous != NULL)
        rendezvous->status = config->progress_desk;
}

static void progress_close(struct agent *agent)
{
    progress_desk_destroy(agent_own(agent, progress_desk));
}

const struct agent_part progress_desk_agent_part = {
    .name = "progress_desk", .crew = progress_crew, .close = progress_close};

/* Lines */

static bool seat_of(void *context, pid_t session, uint32_t *seat)
{
    const struct agent *agent = context;
    return crews_seat_of(agent->crews, session, seat);
}

static void lines_crew(struct agent *agent, struct crew_config *config,
                       const Hvdrun__Prepare *prepare, bool joins)
{
    struct error err = ERROR_INIT;
    struct worker_lines *lines = agent_own(agent, worker_lines);
    (void)prepare;
    if (lines == NULL)
        lines = worker_lines_create(agent->loop, &agent->post, seat_of, agent, &err);
    agent->own[AGENT_PART_worker_lines] = lines;
    if (lines == NULL) {
        log_info(&agent->post.log, "no line to the workers: %s", err.text);
        return;
    }
    if (!joins)
        worker_lines_begin(lines, config->epoch);
    config->line_address = worker_lines_address(lines);
}

static void lines_epoch(struct agent *agent, uint32_t epoch)
{
    worker_lines_begin(agent_own(agent, worker_lines), epoch);
}

static void lines_ended(struct agent *agent, const struct frame_header *header, const void *body)
{
    if (agent_own(agent, worker_lines) != NULL)
        worker_lines_ended(agent_own(agent, worker_lines), header->epoch, body);
}

static void lines_close(struct agent *agent)
{
    worker_lines_destroy(agent_own(agent, worker_lines));
}

static const struct agent_order lines_orders[] = {
    {FRAME_RANKS_ENDED, &hvdrun__ranks_ended__descriptor, lines_ended}, {0}};
const struct agent_part worker_lines_agent_part = {.name = "worker_lines",
                                                   .orders = lines_orders,
                                                   .crew = lines_crew,
                                                   .epoch = lines_epoch,
                                                   .close = lines_close};

/* News about hosts */

static void notified(void *context, uint32_t seat, uint64_t timestamp, const char *problem)
{
    const struct agent *agent = context;
    Hvdrun__Notified message = HVDRUN__NOTIFIED__INIT;
    message.seat = seat;
    message.timestamp = timestamp;
    message.problem = (char *)(problem == NULL ? "" : problem); /* protobuf-c only reads it */
    post_message(&agent->post, FRAME_NOTIFIED, &message.base);
}

/* Such a worker has a line, and no service of its own. */
static bool registered_line(const Hvdrun__Notify *notify)
{
    return notify->registration.len == strlen(LINE_REGISTRATION) &&
           memcmp(notify->registration.data, LINE_REGISTRATION, notify->registration.len) == 0;
}

static void notifier_take(struct agent *agent, const struct frame_header *header, const void *body)
{
    const Hvdrun__Notify *message = body;
    struct worker_lines *lines = agent_own(agent, worker_lines);
    (void)header;
    if (agent_own(agent, notifier) == NULL)
        agent->own[AGENT_PART_notifier] = notifier_create(agent->loop, notified, agent);
    if (!registered_line(message)) {
        notifier_send(agent_own(agent, notifier), message->seat, message->timestamp,
                      (int)message->result, message->registration.data, message->registration.len);
        return;
    }
    bool sent = lines != NULL && worker_lines_hosts(lines, message->seat);
    notified(agent, message->seat, message->timestamp, sent ? NULL : "it has no line");
}

static void notifier_close(struct agent *agent)
{
    notifier_destroy(agent_own(agent, notifier));
}

static const struct agent_order notifier_orders[] = {
    {FRAME_NOTIFY, &hvdrun__notify__descriptor, notifier_take}, {0}};
const struct agent_part notifier_agent_part = {
    .name = "notifier", .orders = notifier_orders, .close = notifier_close};
