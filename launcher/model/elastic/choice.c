/* SPDX-License-Identifier: Apache-2.0 */
#include "model/elastic/choice.h"

#include <stdlib.h>

#include "base/mem.h"
#include "model/plan/mapping.h"

/* The order of hosts: those with survivors, then those of the present epoch, then the others. */
static int rank_of_host(const struct elastic_host *host)
{
    if (host->staying > 0)
        return 0;
    return host->holds_place ? 1 : 2;
}

void elastic_choice_make(const struct elastic *e, struct elastic_choice *choice)
{
    const struct elastic_hosts *hosts = &e->hosts;
    *choice = (struct elastic_choice){.hosts = mem_array((size_t)hosts->count + 1, sizeof(int))};
    int with_survivors = 0;
    for (int turn = 0; turn < 3; turn++)
        for (int i = 0; i < hosts->count; i++) {
            int usable = elastic_hosts_usable(&hosts->items[i]);
            if (usable == 0 || rank_of_host(&hosts->items[i]) != turn)
                continue;
            choice->hosts[choice->count++] = i;
            choice->usable += usable;
            with_survivors += turn == 0;
        }
    int spares = choice->count - with_survivors;
    if (spares > e->config.spares)
        spares = e->config.spares;
    int used = choice->count - spares;
    int64_t slots = 0;
    for (int i = 0; i < choice->count; i++) {
        if (i >= used && slots >= e->config.np)
            break; /* the rest is spare */
        slots += elastic_hosts_usable(&hosts->items[choice->hosts[i]]);
        if (i >= used)
            used++;
    }
    choice->count = used;
    int64_t limit = e->config.max_np > 0 ? e->config.max_np : PLAN_SIZE_MAX;
    choice->size = (int)(slots < limit ? slots : limit);
}

void elastic_choice_clear(struct elastic_choice *choice)
{
    free(choice->hosts);
    *choice = (struct elastic_choice){.count = 0};
}

/* `slots` is the array that the offers' slots lie in; both are the caller's. */
static void make_offers(const struct elastic *e, const struct elastic_choice *choice,
                        struct elastic_offer **offers, int **slots)
{
    size_t total = 0;
    for (int i = 0; i < choice->count; i++)
        total += (size_t)elastic_hosts_usable(&e->hosts.items[choice->hosts[i]]);
    *slots = mem_array(total + 1, sizeof(**slots));
    *offers = mem_array((size_t)choice->count + 1, sizeof(**offers));
    int *next = *slots;
    for (int i = 0; i < choice->count; i++) {
        const struct elastic_host *host = &e->hosts.items[choice->hosts[i]];
        struct elastic_offer *offer = &(*offers)[i];
        *offer = (struct elastic_offer){.host = choice->hosts[i],
                                        .slots = next,
                                        .place = host->place,
                                        .stays = host->holds_place};
        for (int slot = 0; slot < host->slots; slot++)
            if (elastic_hosts_slot_usable(host, slot))
                next[offer->count++] = slot;
        next += offer->count;
    }
}

void elastic_choice_place(const struct elastic *e, const struct elastic_choice *choice,
                          const struct elastic_survivor *survivors, int count,
                          struct elastic_placement *out)
{
    struct elastic_offer *offers AUTO_FREE = NULL;
    int *slots AUTO_FREE = NULL;
    make_offers(e, choice, &offers, &slots);
    elastic_placement_make(
        &(struct elastic_placement_request){
            .offers = offers,
            .offer_count = choice->count,
            .survivors = survivors,
            .survivor_count = count,
            .size = choice->size,
            .host_total = e->hosts.count,
        },
        out);
}
