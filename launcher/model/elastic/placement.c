/* SPDX-License-Identifier: Apache-2.0 */
#include "model/elastic/placement.h"

#include <stdlib.h>

#include "base/mem.h"
#include "model/plan/mapping.h"

#define NOBODY -1
#define NEWCOMER -2

/* One cell for each offered slot, host by host. */
struct sites {
    const struct elastic_placement_request *request;
    int *offer_of; /* by host number; -1 */
    int *first;    /* cell of each offer's first slot; one more entry for the end */
    int *who;      /* of each cell: index of the survivor, NEWCOMER or NOBODY */
    int *cell_of;  /* of each survivor */
    int *taken;    /* cells of each offer that are not NOBODY */
    int *last;     /* of each offer: index of its last survivor; -1 none */
    int *by_place; /* offer at each place; -1 */
    int place_room;
};

static int *filled(int count, int value)
{
    int *array = mem_array((size_t)count + 1, sizeof(*array));
    for (int i = 0; i <= count; i++)
        array[i] = value;
    return array;
}

static int slot_index(const struct elastic_offer *offer, int slot)
{
    int low = 0, high = offer->count - 1;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (offer->slots[middle] < slot)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void sites_init(struct sites *sites, const struct elastic_placement_request *request)
{
    *sites = (struct sites){
        .request = request,
        .offer_of = filled(request->host_total, -1),
        .first = filled(request->offer_count, 0),
        .cell_of = filled(request->survivor_count, -1),
        .taken = filled(request->offer_count, 0),
        .last = filled(request->offer_count, -1),
    };
    int cells = 0;
    for (int o = 0; o < request->offer_count; o++) {
        sites->offer_of[request->offers[o].host] = o;
        sites->first[o] = cells;
        cells += request->offers[o].count;
    }
    sites->first[request->offer_count] = cells;
    sites->who = filled(cells, NOBODY);
}

static void sites_clear(struct sites *sites)
{
    free(sites->offer_of);
    free(sites->first);
    free(sites->who);
    free(sites->cell_of);
    free(sites->taken);
    free(sites->last);
    free(sites->by_place);
}

static void seat_survivors(struct sites *sites)
{
    for (int i = 0; i < sites->request->survivor_count; i++) {
        const struct elastic_survivor *survivor = &sites->request->survivors[i];
        int o = sites->offer_of[survivor->host];
        int cell = sites->first[o] + slot_index(&sites->request->offers[o], survivor->slot);
        sites->who[cell] = i;
        sites->cell_of[i] = cell;
        sites->taken[o]++;
        sites->last[o] = i;
    }
}

static void seat_newcomers(struct sites *sites)
{
    int missing = sites->request->size - sites->request->survivor_count;
    for (int o = 0; o < sites->request->offer_count && missing > 0; o++)
        for (int cell = sites->first[o]; cell < sites->first[o + 1] && missing > 0; cell++)
            if (sites->who[cell] == NOBODY) {
                sites->who[cell] = NEWCOMER;
                sites->taken[o]++;
                missing--;
            }
}

static void take_place(struct sites *sites, struct elastic_placement *out, int offer, int place)
{
    sites->by_place[place] = offer;
    out->places[offer] = place;
}

static void give_places(struct sites *sites, struct elastic_placement *out)
{
    const struct elastic_offer *offers = sites->request->offers;
    int count = sites->request->offer_count;
    int room = count;
    for (int o = 0; o < count; o++)
        if (offers[o].place >= room)
            room = offers[o].place + 1;
    sites->place_room = room + count;
    sites->by_place = filled(sites->place_room, -1);
    out->places = filled(count, -1);
    /* those that stay, then those that come back to a free place of theirs, then the others */
    for (int turn = 0; turn < 2; turn++)
        for (int o = 0; o < count; o++) {
            int own = offers[o].place;
            if (sites->taken[o] > 0 && out->places[o] < 0 && own >= 0 &&
                (turn > 0 || offers[o].stays) && sites->by_place[own] < 0)
                take_place(sites, out, o, own);
        }
    int next = 0;
    for (int o = 0; o < count; o++) {
        if (sites->taken[o] == 0 || out->places[o] >= 0)
            continue;
        while (sites->by_place[next] >= 0)
            next++;
        take_place(sites, out, o, next);
    }
}

static void add_member(struct sites *sites, struct elastic_plan *out, int offer, int cell)
{
    int who = sites->who[cell];
    struct elastic_member *member = &out->members[out->size];
    *member = (struct elastic_member){
        .seat = who >= 0 ? sites->request->survivors[who].seat : -1,
        .host = sites->request->offers[offer].host,
        .slot = sites->request->offers[offer].slots[cell - sites->first[offer]],
        .rank = out->size++,
        .local_rank = cell, /* by which set_local_ranks() finds it */
        .local_size = sites->taken[offer],
        .is_new = who < 0,
    };
}

static void add_newcomers(struct sites *sites, struct elastic_plan *out, int offer)
{
    for (int cell = sites->first[offer]; cell < sites->first[offer + 1]; cell++)
        if (sites->who[cell] == NEWCOMER)
            add_member(sites, out, offer, cell);
}

static void set_ranks(struct sites *sites, struct elastic_plan *out)
{
    out->members = mem_array((size_t)sites->request->size, sizeof(*out->members));
    for (int i = 0; i < sites->request->survivor_count; i++) {
        int o = sites->offer_of[sites->request->survivors[i].host];
        add_member(sites, out, o, sites->cell_of[i]);
        if (sites->last[o] == i)
            add_newcomers(sites, out, o);
    }
    for (int place = 0; place < sites->place_room; place++) {
        int o = sites->by_place[place];
        if (o >= 0 && sites->last[o] < 0)
            add_newcomers(sites, out, o);
    }
}

static void set_local_ranks(struct sites *sites, struct elastic_plan *out)
{
    int *local AUTO_FREE = filled(sites->first[sites->request->offer_count], 0);
    for (int o = 0; o < sites->request->offer_count; o++) {
        int next = 0;
        for (int cell = sites->first[o]; cell < sites->first[o + 1]; cell++)
            if (sites->who[cell] != NOBODY)
                local[cell] = next++;
    }
    for (int r = 0; r < out->size; r++)
        out->members[r].local_rank = local[out->members[r].local_rank];
}

static void list_hosts(struct sites *sites, struct elastic_plan *out)
{
    bool *listed AUTO_FREE = mem_array((size_t)sites->request->offer_count + 1, sizeof(*listed));
    out->hosts = filled(sites->request->offer_count, -1);
    for (int r = 0; r < out->size; r++) {
        int o = sites->offer_of[out->members[r].host];
        if (!listed[o])
            out->hosts[out->host_count++] = out->members[r].host;
        listed[o] = true;
    }
}

/* A host has every local rank below its local size, so the hosts in their order count it up. */
static void set_cross_ranks(struct sites *sites, struct elastic_plan *out)
{
    int *across AUTO_FREE = filled(out->size, 0);
    int *order AUTO_FREE = filled(sites->request->host_total, 0);
    for (int h = 0; h < out->host_count; h++)
        order[out->hosts[h]] = h;
    /* members of the h-th host, gathered: ranks of a host need not be consecutive */
    int *start AUTO_FREE = filled(out->host_count, 0);
    for (int h = 0; h < out->host_count; h++)
        start[h + 1] = start[h] + sites->taken[sites->offer_of[out->hosts[h]]];
    int *ranks AUTO_FREE = filled(out->size, 0);
    for (int r = 0; r < out->size; r++)
        ranks[start[order[out->members[r].host]]++] = r;
    for (int i = 0; i < out->size; i++) {
        struct elastic_member *member = &out->members[ranks[i]];
        member->cross_rank = across[member->local_rank]++;
    }
    for (int r = 0; r < out->size; r++)
        out->members[r].cross_size = across[out->members[r].local_rank];
}

void elastic_placement_make(const struct elastic_placement_request *request,
                            struct elastic_placement *out)
{
    struct sites sites;
    sites_init(&sites, request);
    *out = (struct elastic_placement){.places = NULL};
    seat_survivors(&sites);
    seat_newcomers(&sites);
    give_places(&sites, out);
    set_ranks(&sites, &out->plan);
    set_local_ranks(&sites, &out->plan);
    list_hosts(&sites, &out->plan);
    set_cross_ranks(&sites, &out->plan);
    sites_clear(&sites);
}

void elastic_plan_move(struct elastic_plan *to, struct elastic_plan *from)
{
    free(to->members);
    free(to->hosts);
    *to = *from;
    *from = (struct elastic_plan){.size = 0};
}

void elastic_placement_clear(struct elastic_placement *placement)
{
    free(placement->plan.members);
    free(placement->plan.hosts);
    free(placement->places);
    *placement = (struct elastic_placement){.places = NULL};
}

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
