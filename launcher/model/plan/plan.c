/* SPDX-License-Identifier: Apache-2.0 */
#include "model/plan/plan.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/strv.h"
#include "model/plan/rank_list.h"

struct app *app_list_add(struct app_list *list)
{
    struct app *app = &MEM_ADD(list->items, list->count);
    *app = (struct app){.wdir = NULL};
    return app;
}

void app_list_destroy(struct app_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        strv_destroy(&list->items[i].argv);
        strv_destroy(&list->items[i].env);
        free(list->items[i].wdir);
    }
    free(list->items);
    *list = (struct app_list){0};
}

/* How many ranks are wanted, at least 1, or -1. `usual`: when -np is not given. */
static int64_t wanted_ranks(const struct plan_request *request, int64_t usual, struct error *err)
{
    const struct app_list *apps = request->apps;
    int64_t of_apps = 0;
    for (size_t i = 0; i < apps->count; i++) {
        int np = apps->items[i].np;
        if (np < 0 || (np == 0 && apps->count > 1))
            return error_usage(
                err, "program %zu of %zu has no number of ranks; give each one its own -np", i + 1,
                apps->count);
        of_apps += np;
    }
    if (request->np < 0)
        return error_usage(err, "cannot start %d ranks; give -np 1 or more", request->np);
    if (request->np > 0 && of_apps > 0 && request->np != of_apps)
        return error_usage(err,
                           "%d ranks wanted in all, but the programs ask for %lld together; make "
                           "the counts agree or leave the first one out",
                           request->np, (long long)of_apps);
    int64_t wanted = of_apps > 0 ? of_apps : request->np;
    if (wanted == 0)
        wanted = usual;
    if (wanted > PLAN_SIZE_MAX)
        return error_usage(err,
                           "%lld ranks are more than the limit of %d for one job; give a smaller "
                           "-np or fewer slots",
                           (long long)wanted, PLAN_SIZE_MAX);
    return wanted;
}

/* One node for each host that has ranks, in the order in which they first get one. */
static void add_node(struct plan *plan, const struct host *host)
{
    struct plan_node *node = &plan->nodes[plan->node_count++];
    node->name = mem_strdup(host->name);
    node->slots = host->slots;
    host_traits_copy(&node->traits, &host->traits);
}

static void make_nodes(struct plan *plan, const struct plan_request *request, const int *host_of)
{
    const struct host_list *hosts = request->hosts;
    int *node_of AUTO_FREE = mem_array(hosts->count, sizeof(*node_of)); /* + 1; 0: none yet */
    bool all = request->idle_hosts || hosts->count < (size_t)plan->size;
    size_t most = all ? hosts->count : (size_t)plan->size;
    plan->nodes = mem_array(most, sizeof(*plan->nodes));
    plan->ranks = mem_array((size_t)plan->size, sizeof(*plan->ranks));
    for (int r = 0; r < plan->size; r++) {
        const struct host *host = &hosts->items[host_of[r]];
        int *number = &node_of[host_of[r]];
        if (*number == 0) {
            add_node(plan, host);
            *number = plan->node_count;
        }
        plan->ranks[r].rank = r;
        plan->ranks[r].node = *number - 1;
    }
    for (size_t i = 0; request->idle_hosts && i < hosts->count; i++) {
        if (node_of[i] == 0 && hosts->items[i].slots > 0)
            add_node(plan, &hosts->items[i]);
    }
}

static void count_slots(struct plan *plan, const struct mapping *mapping,
                        const struct host_list *hosts, const int *host_of)
{
    for (int n = 0; n < plan->node_count; n++) {
        struct plan_node *node = &plan->nodes[n];
        if (node->local_size > 0)
            node->slots =
                mapping_slots(mapping, &hosts->items[host_of[node->ranks[0]]], node->local_size);
    }
}

void plan_gather(struct plan *plan)
{
    int next = 0;
    plan->ranks_by_node = mem_array((size_t)plan->size, sizeof(*plan->ranks_by_node));
    for (int r = 0; r < plan->size; r++)
        plan->nodes[plan->ranks[r].node].local_size++;
    int *filled AUTO_FREE = mem_array((size_t)plan->node_count, sizeof(*filled));
    for (int n = 0; n < plan->node_count; n++) {
        plan->nodes[n].ranks = plan->ranks_by_node + next;
        filled[n] = next;
        next += plan->nodes[n].local_size;
    }
    for (int r = 0; r < plan->size; r++)
        plan->ranks_by_node[filled[plan->ranks[r].node]++] = r;
}

void plan_number_ranks(struct plan *plan)
{
    /* nodes seen so far that have this local rank; no local rank reaches the job's size */
    int *across AUTO_FREE = mem_array((size_t)plan->size, sizeof(*across));
    for (int n = 0; n < plan->node_count; n++) {
        const struct plan_node *node = &plan->nodes[n];
        for (int local = 0; local < node->local_size; local++) {
            struct plan_rank *rank = &plan->ranks[node->ranks[local]];
            rank->local_rank = local;
            rank->cross_rank = across[local]++;
        }
    }
    for (int r = 0; r < plan->size; r++)
        plan->ranks[r].cross_size = across[plan->ranks[r].local_rank];
}

static void copy_cpus(struct plan *plan, const struct mapping *mapping)
{
    for (int r = 0; mapping->rule == MAP_LIST && r < plan->size; r++)
        plan->ranks[r].cpus = mem_strdup(mapping->list.items[r].cpus);
    plan->cpus_per_proc = mapping->cpus_per_proc;
    plan->round_numa = mapping->rule == MAP_NUMA;
}

static void assign_apps(struct plan *plan, const struct app_list *apps)
{
    int next = 0;
    for (size_t a = 0; a < apps->count; a++) {
        int np = apps->count == 1 ? plan->size : apps->items[a].np;
        for (int i = 0; i < np; i++, next++) {
            plan->ranks[next].app = (int)a;
            plan->ranks[next].app_rank = i;
        }
    }
}

struct plan *plan_create(const struct plan_request *request, struct error *err)
{
    static const struct mapping by_slot = {.rule = MAP_SLOT};
    const struct mapping *mapping = request->mapping == NULL ? &by_slot : request->mapping;
    const struct host_list *hosts = request->hosts;
    int64_t usual = mapping_size(mapping, hosts);
    int64_t wanted = wanted_ranks(request, usual > 0 ? usual : 1, err);
    if (wanted < 0)
        return NULL;
    int *host_of AUTO_FREE =
        mapping_assign(mapping, hosts, (int)wanted, request->oversubscribe, err);
    if (host_of == NULL)
        return NULL;
    struct plan *plan = mem_alloc(sizeof(*plan));
    plan->size = (int)wanted;
    make_nodes(plan, request, host_of);
    plan_gather(plan);
    count_slots(plan, mapping, hosts, host_of);
    plan_number_ranks(plan);
    for (int r = 0; r < plan->size; r++)
        plan->ranks[r].slot = plan->ranks[r].local_rank;
    copy_cpus(plan, mapping);
    assign_apps(plan, request->apps);
    return plan;
}

void plan_destroy(struct plan *plan)
{
    if (plan == NULL)
        return;
    for (int n = 0; n < plan->node_count; n++) {
        free(plan->nodes[n].name);
        host_traits_clear(&plan->nodes[n].traits);
    }
    for (int r = 0; r < plan->size; r++)
        free(plan->ranks[r].cpus);
    free(plan->nodes);
    free(plan->ranks);
    free(plan->ranks_by_node);
    free(plan);
}

bool plan_is_by_blocks(const struct plan *plan)
{
    int r = 1;
    while (r < plan->size && plan->ranks[r - 1].node <= plan->ranks[r].node)
        r++;
    return r >= plan->size;
}

void plan_node_describe(const struct plan_node *node, struct buf *out)
{
    rank_ranges(node->ranks, node->local_size, out);
}
