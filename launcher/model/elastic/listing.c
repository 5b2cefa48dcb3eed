/* SPDX-License-Identifier: Apache-2.0 */
#include "model/elastic/listing.h"

#include <stdio.h>
#include <stdlib.h>

#include "model/elastic/departures.h"

static const char *name_of(const struct elastic *e, int number)
{
    return elastic_hosts_name(&e->hosts, number);
}

static void move(struct elastic *e, int number, enum elastic_host_state to)
{
    elastic_hosts_move(&e->hosts, number, to);
}

/* On the list no more. */
static void unlist(struct elastic *e, int number)
{
    struct elastic_host *host = &e->hosts.items[number];
    host->listed = false;
    e->call_again = true;
    char text[300];
    switch (host->state) {
    case ELASTIC_HOST_CALLING: elastic_emit(e, ELASTIC_LET_GO)->host = number; /* fall through */
    case ELASTIC_HOST_KNOWN:
    case ELASTIC_HOST_AWAY:
    case ELASTIC_HOST_DRAINED:
        move(e, number, ELASTIC_HOST_ABSENT);
        elastic_hosts_undrain(host);
        break;
    case ELASTIC_HOST_UP:
        snprintf(text, sizeof(text), "%.200s is not listed any more", name_of(e, number));
        elastic_departures_begin(e, number, text);
        break;
    default: break; /* it drains already */
    }
}

static bool has_worker_above(const struct elastic *e, int number)
{
    const struct elastic_host *host = &e->hosts.items[number];
    for (int seat = host->first_seat; seat >= 0; seat = e->workers.items[seat].next) {
        const struct elastic_worker *worker = &e->workers.items[seat];
        if ((elastic_worker_stays(worker) || worker->state == ELASTIC_WORKER_PLANNED) &&
            worker->slot >= host->slots)
            return true;
    }
    return false;
}

static void resize(struct elastic *e, int number, int slots)
{
    struct elastic_host *host = &e->hosts.items[number];
    if (slots == host->slots)
        return;
    elastic_hosts_set_slots(host, slots);
    e->call_again = e->grow_again = true;
    if (host->state != ELASTIC_HOST_UP || !has_worker_above(e, number))
        return;
    char text[300];
    snprintf(text, sizeof(text), "%.200s has only %d slot%s now", name_of(e, number), slots,
             elastic_plural(slots));
    elastic_departures_shrink(e, number, text);
}

static void enter(struct elastic *e, const struct host *entry)
{
    int number = elastic_hosts_enter(&e->hosts, entry);
    struct elastic_host *host = &e->hosts.items[number];
    host->seen = e->listing;
    if (!host->listed) {
        host->listed = host->unseen = true;
        e->call_again = e->grow_again = true;
        if (host->state == ELASTIC_HOST_ABSENT)
            move(e, number, ELASTIC_HOST_KNOWN);
        else if (host->state == ELASTIC_HOST_DRAINING && !host->drained)
            move(e, number, ELASTIC_HOST_UP);
        else if (host->state == ELASTIC_HOST_DRAINING)
            host->relisted = true; /* the next machine of this name, once this one has left */
    }
    resize(e, number, entry->slots);
}

void elastic_listing_take(struct elastic *e, const struct host_list *list)
{
    e->listing++;
    free(e->discovery_problem);
    e->discovery_problem = NULL;
    for (size_t i = 0; i < list->count && e->state != ELASTIC_ENDING; i++)
        enter(e, &list->items[i]);
    for (int i = 0; i < e->hosts.count && e->state != ELASTIC_ENDING; i++)
        if (e->hosts.items[i].listed && e->hosts.items[i].seen != e->listing)
            unlist(e, i);
}
