/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/rendezvous_door.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "rendezvous/http.h"
#include "rendezvous/proxy.h"
#include "rendezvous/server.h"

/* Of the link to the driver: a flood of requests must not be what fills it up. */
#define QUEUE_MAX (LINK_QUEUE_MAX / 2)

struct rendezvous_door {
    struct post post; /* under the epoch of the door */
    struct rendezvous_server *server;
    struct rendezvous_proxy *proxy;
    int (*status_post)(void *context, const struct rendezvous_request *request, char **body);
    void *status_context;
};

void rendezvous_door_posts(struct rendezvous_door *door,
                           int (*post)(void *context, const struct rendezvous_request *request,
                                       char **body),
                           void *context)
{
    door->status_post = post;
    door->status_context = context;
}

/* At once, always: a training step waits for the answer. */
static void answer_post(struct rendezvous_door *door, uint64_t token,
                        const struct rendezvous_request *request)
{
    char *body AUTO_FREE = NULL;
    int status = HTTP_NOT_FOUND;
    if (door->status_post != NULL)
        status = door->status_post(door->status_context, request, &body);
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

struct rendezvous_door *rendezvous_door_create(struct loop *loop, const struct post *post,
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
        rendezvous_door_destroy(door);
        return NULL;
    }
    return door;
}

void rendezvous_door_destroy(struct rendezvous_door *door)
{
    if (door == NULL)
        return;
    rendezvous_server_destroy(door->server);
    rendezvous_proxy_destroy(door->proxy);
    free(door);
}

int rendezvous_door_port(const struct rendezvous_door *door)
{
    return rendezvous_server_port(door->server);
}

void rendezvous_door_begin(struct rendezvous_door *door, uint32_t epoch)
{
    if (door->post.epoch == epoch)
        return; /* what was learnt since then holds */
    door->post.epoch = epoch;
    rendezvous_proxy_begin(door->proxy);
}

void rendezvous_door_expect(struct rendezvous_door *door, uint32_t size, uint32_t local_size)
{
    uint64_t need = rendezvous_memory_need(size);
    rendezvous_proxy_limit(door->proxy, need < RENDEZVOUS_CACHE_MAX ? need : RENDEZVOUS_CACHE_MAX);
    rendezvous_server_expect(door->server, local_size < size ? need / size * local_size : need);
}

void rendezvous_door_reply(struct rendezvous_door *door, const Hvdrun__KvReply *message)
{
    rendezvous_proxy_reply(door->proxy, message->token, (int)message->status, message->body.data,
                           message->body.len);
}
