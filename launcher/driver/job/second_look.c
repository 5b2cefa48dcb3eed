/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/job/second_look.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "transport/dial.h"

#define TRIES 3 /* attempts start one after the other, and one success is enough */

struct second_look {
    struct dial *dial;
    void (*answers)(void *context);
    void *context;
};

static void dialed(void *context, const struct dial_result *result)
{
    struct second_look *look = context;
    look->dial = NULL;
    if (result->fd < 0)
        return;
    close(result->fd);
    look->answers(look->context);
}

/* -1: it is not a numeric address. */
static int fill(struct resolve_result *to, const char *numeric)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    if (getaddrinfo(numeric, NULL, &hints, &found) != 0 || found == NULL)
        return -1;
    for (size_t i = 0; i < TRIES; i++) {
        to->addresses[i] = (struct sockaddr_storage){.ss_family = (sa_family_t)found->ai_family};
        memcpy(&to->addresses[i], found->ai_addr, found->ai_addrlen);
    }
    to->count = TRIES;
    freeaddrinfo(found);
    return 0;
}

struct second_look *second_look_begin(struct loop *loop, const struct transport_stream *stream,
                                      int64_t limit_ms, void (*answers)(void *context),
                                      void *context)
{
    struct resolve_result peers = {.count = 0};
    if (stream->peer[0] == '\0' || stream->peer_port == 0 || fill(&peers, stream->peer) < 0)
        return NULL;
    struct second_look *look = mem_alloc(sizeof(*look));
    *look = (struct second_look){.answers = answers, .context = context};
    look->dial =
        dial_start(loop, &peers, stream->peer_port, "sshd", limit_ms, limit_ms, dialed, look);
    return look;
}

void second_look_end(struct second_look *look)
{
    if (look == NULL)
        return;
    dial_cancel(look->dial);
    free(look);
}
