/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix/module/bridge.h"

#include <stddef.h>
#include <sys/eventfd.h>

#include "base/fd.h"

int bridge_open(struct bridge *bridge)
{
    *bridge = (struct bridge){.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    bridge->last = &bridge->first;
    pthread_mutex_init(&bridge->lock, NULL);
    return bridge->event_fd < 0 ? -1 : 0;
}

static void drop_list(struct request *list)
{
    while (list != NULL) {
        struct request *next = list->next;
        list->kind->drop(list);
        list = next;
    }
}

static struct request *take_all(struct bridge *bridge)
{
    pthread_mutex_lock(&bridge->lock);
    struct request *list = bridge->first;
    bridge->first = NULL;
    bridge->last = &bridge->first;
    pthread_mutex_unlock(&bridge->lock);
    return list;
}

void bridge_drop_parked(struct bridge *bridge)
{
    struct request *list = bridge->parked;
    bridge->parked = NULL;
    drop_list(list);
}

void bridge_close(struct bridge *bridge)
{
    drop_list(take_all(bridge));
    bridge_drop_parked(bridge);
    fd_close(&bridge->event_fd);
    pthread_mutex_destroy(&bridge->lock);
}

void bridge_push(struct bridge *bridge, struct request *request)
{
    request->next = NULL;
    pthread_mutex_lock(&bridge->lock);
    struct request **place = bridge->last;
    *place = request;
    bridge->last = &request->next;
    pthread_mutex_unlock(&bridge->lock);
    /* Only the first of a batch has to wake the loop. */
    if (place == &bridge->first)
        eventfd_write(bridge->event_fd, 1);
}

void bridge_run(struct bridge *bridge, struct server *server)
{
    eventfd_t count = 0;
    eventfd_read(bridge->event_fd, &count);
    struct request *list = take_all(bridge);
    while (list != NULL) {
        struct request *next = list->next;
        list->kind->run(server, list);
        list = next;
    }
}

uint64_t bridge_park(struct bridge *bridge, struct request *request)
{
    request->id = ++bridge->last_id;
    request->next = bridge->parked;
    bridge->parked = request;
    return request->id;
}

struct request *bridge_unpark(struct bridge *bridge, uint64_t id, const struct request_kind *kind)
{
    for (struct request **at = &bridge->parked; *at != NULL; at = &(*at)->next) {
        struct request *request = *at;
        if (request->id != id || request->kind != kind)
            continue;
        *at = request->next;
        return request;
    }
    return NULL;
}
