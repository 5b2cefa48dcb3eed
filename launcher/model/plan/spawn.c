/* SPDX-License-Identifier: Apache-2.0 */
#include "model/plan/spawn.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/status.h"
#include "base/text.h"

#define UNLIMITED INT32_MAX

/* ---- Slots ----------------------------------------------------------------------------------- */

struct seats_of {
    bool *taken; /* by slot, as many as `room` */
    int room;    /* slots, and those beyond that ranks have taken, or more */
    int used;
    int lowest;  /* no slot below is free */
    int allowed; /* how many more ranks the present app may put there */
};

struct seats {
    const struct spawn_request *request;
    struct seats_of *nodes;
};

static void take(struct seats_of *node, int slot)
{
    if (slot >= node->room) {
        size_t before = (size_t)node->room, room = (size_t)slot + 1 + before;
        node->taken = mem_resize_array(node->taken, room, sizeof(bool));
        memset(node->taken + before, 0, room - before);
        node->room = (int)room;
    }
    node->used += !node->taken[slot];
    node->taken[slot] = true;
}

static void seats_init(struct seats *seats, const struct spawn_request *request)
{
    const struct plan *whole = request->whole;
    seats->request = request;
    seats->nodes = mem_array((size_t)whole->node_count, sizeof(*seats->nodes));
    for (int rank = 0; rank < whole->size; rank++) {
        if (!request->ended[rank])
            take(&seats->nodes[whole->ranks[rank].node], whole->ranks[rank].slot);
    }
}

static void seats_clear(struct seats *seats)
{
    for (int n = 0; n < seats->request->whole->node_count; n++)
        free(seats->nodes[n].taken);
    free(seats->nodes);
}

/* The node with the fewest ranks for each slot; -1: none is allowed. */
static int least_used(const struct seats *seats)
{
    int best = -1;
    int64_t of_best = 1;
    for (int n = 0; n < seats->request->whole->node_count; n++) {
        const struct seats_of *node = &seats->nodes[n];
        int64_t slots = seats->request->slots[n] > 0 ? seats->request->slots[n] : 1;
        if (node->allowed <= 0 ||
            (best >= 0 && node->used * of_best >= seats->nodes[best].used * slots))
            continue;
        best = n;
        of_best = slots;
    }
    return best;
}

/* -1: there is none. */
static int next_node(const struct seats *seats)
{
    for (int n = 0; n < seats->request->whole->node_count; n++) {
        if (seats->nodes[n].allowed > 0 && seats->nodes[n].used < seats->request->slots[n])
            return n;
    }
    return seats->request->oversubscribe ? least_used(seats) : -1;
}

static int lowest_free(struct seats_of *node)
{
    while (node->lowest < node->room && node->taken[node->lowest])
        node->lowest++;
    return node->lowest;
}

/* ---- Hosts ----------------------------------------------------------------------------------- */

/* Allows so many ranks on each node with this name, or else with this host name, as
 * MPI_Get_processor_name() tells it. false: there is none. */
static bool allow_name(struct seats *seats, const char *word, size_t length, int most)
{
    const struct spawn_request *request = seats->request;
    bool found = false;
    for (int planned = 1; planned >= 0 && !found; planned--) {
        for (int n = 0; n < request->whole->node_count; n++) {
            const char *name = planned ? request->whole->nodes[n].name : request->hostnames[n];
            if (!text_is(word, length, name))
                continue;
            seats->nodes[n].allowed = most;
            found = true;
        }
    }
    return found;
}

/* Allows what one word of the list says, "b:2"; "fe80::1" may be a name. -1: it is no host of the
 * job. */
static int allow(struct seats *seats, const char *word, size_t length, struct error *err)
{
    const char *colon = memrchr(word, ':', length);
    char *number AUTO_FREE =
        colon == NULL ? NULL : mem_strndup(colon + 1, length - (size_t)(colon + 1 - word));
    int64_t most = UNLIMITED;
    bool counted = number != NULL && parse_int(number, 1, UNLIMITED, &most, NULL) == 0;
    size_t name = counted ? (size_t)(colon - word) : length;
    if (allow_name(seats, word, length, UNLIMITED) ||
        (counted && allow_name(seats, word, name, (int)most)))
        return 0;
    return error_status(err, STATUS_NO_SLOTS,
                        "%.*s is not one of the hosts where ranks of the job run",
                        (int)(name < 255 ? name : 255), word);
}

static int allow_hosts(struct seats *seats, const char *hosts, struct error *err)
{
    bool any = hosts == NULL || hosts[0] == '\0';
    for (int n = 0; n < seats->request->whole->node_count; n++)
        seats->nodes[n].allowed = any ? UNLIMITED : 0;
    for (const char *at = any ? "" : hosts; *at != '\0'; at += *at == ',') {
        size_t length = strcspn(at, ",");
        if (length > 0 && allow(seats, at, length, err) < 0)
            return -1;
        at += length;
    }
    return 0;
}

/* ---- The plans ------------------------------------------------------------------------------- */

static void copy_nodes(struct plan *to, const struct plan *from)
{
    to->node_count = from->node_count;
    to->nodes = mem_array((size_t)from->node_count, sizeof(*to->nodes));
    for (int n = 0; n < from->node_count; n++) {
        to->nodes[n].name = mem_strdup(from->nodes[n].name);
        to->nodes[n].slots = from->nodes[n].slots;
        host_traits_copy(&to->nodes[n].traits, &from->nodes[n].traits);
    }
}

static int place(struct seats *seats, struct plan *plan, struct error *err)
{
    const struct spawn_request *request = seats->request;
    int rank = 0;
    for (int a = 0; a < request->app_count; a++) {
        if (allow_hosts(seats, request->apps[a].hosts, err) < 0)
            return -1;
        for (int i = 0; i < request->apps[a].np; i++, rank++) {
            int node = next_node(seats);
            if (node < 0)
                return error_status(err, STATUS_NO_SLOTS, "%d rank%s wanted, and %d slot%s free",
                                    plan->size, plan->size == 1 ? " is" : "s are", rank,
                                    rank == 1 ? " is" : "s are");
            int slot = lowest_free(&seats->nodes[node]);
            plan->ranks[rank] = (struct plan_rank){
                .rank = rank, .app = a, .app_rank = i, .node = node, .slot = slot};
            take(&seats->nodes[node], slot);
            seats->nodes[node].allowed--;
        }
    }
    return 0;
}

struct plan *spawn_plan(const struct spawn_request *request, struct error *err)
{
    int64_t size = 0;
    for (int a = 0; a < request->app_count; a++) {
        if (request->apps[a].np < 1) {
            error_usage(err, "no ranks are wanted of a program");
            return NULL;
        }
        size += request->apps[a].np;
    }
    if (size < 1 || size + request->whole->size > PLAN_SIZE_MAX) {
        error_usage(err, "a job can have 1 to %d ranks in all", PLAN_SIZE_MAX);
        return NULL;
    }
    struct plan *plan = mem_alloc(sizeof(*plan));
    plan->size = (int)size;
    plan->cpus_per_proc = request->whole->cpus_per_proc;
    plan->round_numa = request->whole->round_numa;
    plan->ranks = mem_array((size_t)size, sizeof(*plan->ranks));
    copy_nodes(plan, request->whole);
    struct seats seats;
    seats_init(&seats, request);
    int result = place(&seats, plan, err);
    seats_clear(&seats);
    if (result < 0) {
        plan_destroy(plan);
        return NULL;
    }
    plan_gather(plan);
    plan_number_ranks(plan);
    return plan;
}

struct plan *spawn_join(const struct plan *whole, const struct plan *added, int first_app)
{
    struct plan *plan = mem_alloc(sizeof(*plan));
    plan->size = whole->size + added->size;
    plan->cpus_per_proc = whole->cpus_per_proc;
    plan->round_numa = whole->round_numa;
    plan->ranks = mem_array((size_t)plan->size, sizeof(*plan->ranks));
    copy_nodes(plan, whole);
    for (int r = 0; r < plan->size; r++) {
        bool old = r < whole->size;
        struct plan_rank *rank = &plan->ranks[r];
        *rank = old ? whole->ranks[r] : added->ranks[r - whole->size];
        rank->rank = r;
        rank->app += old ? 0 : first_app;
        rank->cpus = mem_strdup(rank->cpus);
    }
    plan_gather(plan);
    return plan;
}
