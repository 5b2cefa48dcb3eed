/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ssh/parts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/map.h"
#include "base/mem.h"

enum { PER_SERVER_LEAST = 8, PER_SERVER_SHARE = 10, RETRY_FIRST_MS = 250 };

struct window_server {
    int busy, limit;
    char name[];
};

enum ticket_state { RESTS, WAITS, GOES };

struct ssh_ticket {
    TAILQ_ENTRY(ssh_ticket) all; /* in the order of creation */
    struct ssh_window *window;
    struct window_server *server; /* whose place it waits for or has; NULL: none */
    enum ticket_state state;
    void *context;
};

struct ssh_window {
    TAILQ_HEAD(, ssh_ticket) tickets;
    struct map servers; /* by name */
    int total, busy, per_server;
};

int ssh_window_per_server(int total)
{
    int share = total / PER_SERVER_SHARE;
    if (share < PER_SERVER_LEAST)
        share = PER_SERVER_LEAST;
    return share < total ? share : total;
}

struct ssh_window *ssh_window_create(int total)
{
    struct ssh_window *window = mem_alloc(sizeof(*window));
    TAILQ_INIT(&window->tickets);
    window->total = total < 1 ? 1 : total;
    window->per_server = ssh_window_per_server(window->total);
    return window;
}

void ssh_window_destroy(struct ssh_window *window)
{
    if (window == NULL)
        return;
    map_clear(&window->servers, free);
    free(window);
}

static struct window_server *server_of(struct ssh_window *window, const char *name)
{
    struct window_server *server = map_get(&window->servers, map_text(name));
    if (server != NULL)
        return server;
    size_t size = strlen(name) + 1;
    server = mem_alloc(sizeof(*server) + size);
    server->limit = window->per_server;
    memcpy(server->name, name, size);
    map_put(&window->servers, map_text(server->name), server);
    return server;
}

void ssh_ticket_rest(struct ssh_ticket *ticket)
{
    if (ticket->state == GOES) {
        ticket->window->busy--;
        if (ticket->server != NULL)
            ticket->server->busy--;
    }
    ticket->server = NULL;
    ticket->state = RESTS;
}

struct ssh_ticket *ssh_ticket_create(struct ssh_window *window, void *context)
{
    struct ssh_ticket *ticket =
        MEM_NEW((struct ssh_ticket){.window = window, .state = WAITS, .context = context});
    TAILQ_INSERT_TAIL(&window->tickets, ticket, all);
    return ticket;
}

void ssh_ticket_destroy(struct ssh_ticket *ticket)
{
    if (ticket == NULL)
        return;
    ssh_ticket_rest(ticket);
    TAILQ_REMOVE(&ticket->window->tickets, ticket, all);
    free(ticket);
}

void ssh_ticket_wait(struct ssh_ticket *ticket, const char *server)
{
    ssh_ticket_rest(ticket);
    ticket->server = server == NULL ? NULL : server_of(ticket->window, server);
    ticket->state = WAITS;
}

void ssh_ticket_logged_in(struct ssh_ticket *ticket)
{
    if (ticket->state != GOES || ticket->server == NULL)
        return;
    ticket->server->busy--;
    if (ticket->server->limit < ticket->window->per_server)
        ticket->server->limit++;
    ticket->server = NULL;
}

void ssh_ticket_dropped(struct ssh_ticket *ticket)
{
    if (ticket->server != NULL && ticket->server->limit > 1)
        ticket->server->limit /= 2;
}

void *ssh_window_next(struct ssh_window *window)
{
    if (window->busy >= window->total)
        return NULL;
    struct ssh_ticket *ticket;
    TAILQ_FOREACH (ticket, &window->tickets, all) {
        struct window_server *server = ticket->server;
        if (ticket->state != WAITS || (server != NULL && server->busy >= server->limit))
            continue;
        ticket->state = GOES;
        window->busy++;
        if (server != NULL)
            server->busy++;
        return ticket->context;
    }
    return NULL;
}

int64_t ssh_retry_delay_ms(int retry, uint32_t random)
{
    int64_t delay = (int64_t)RETRY_FIRST_MS << (retry < 1 ? 0 : retry > 10 ? 9 : retry - 1);
    return delay / 2 + (int64_t)((uint64_t)delay * random >> 32);
}
