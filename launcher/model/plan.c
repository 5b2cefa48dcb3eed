/* SPDX-License-Identifier: Apache-2.0 */
#include "model/plan.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/status.h"

#define SHOWN_HOSTS_MAX 200 /* bytes of the host list in an error, about */

static int64_t total_slots(const struct host_list *hosts)
{
    int64_t total = 0;
    for (size_t i = 0; i < hosts->count; i++)
        total += hosts->items[i].slots;
    return total;
}

/* How many ranks are wanted, at least 1, or -1. */
static int64_t wanted_ranks(const struct plan_request *request, int64_t slots, struct error *err)
{
    const struct app_list *apps = request->apps;
    int64_t of_apps = 0;
    for (size_t i = 0; i < apps->count; i++) {
        int np = apps->items[i].np;
        if (np < 0 || (np == 0 && apps->count > 1))
            return error_status(err, STATUS_USAGE,
                                "program %zu of %zu has no number of ranks; give each one its own "
                                "-np",
                                i + 1, apps->count);
        of_apps += np;
    }
    if (request->np < 0)
        return error_status(err, STATUS_USAGE, "%d ranks cannot be started; give -np 1 or more",
                            request->np);
    if (request->np > 0 && of_apps > 0 && request->np != of_apps)
        return error_status(err, STATUS_USAGE,
                            "%d ranks wanted in all, but the programs ask for %lld together; make "
                            "the counts agree or leave the first one out",
                            request->np, (long long)of_apps);
    int64_t wanted = of_apps > 0 ? of_apps : request->np;
    if (wanted == 0)
        wanted = slots;
    if (wanted > PLAN_SIZE_MAX)
        return error_status(err, STATUS_USAGE,
                            "%lld ranks are more than the %d of one job; give a smaller -np or "
                            "fewer slots",
                            (long long)wanted, PLAN_SIZE_MAX);
    return wanted;
}

static int no_slots(const struct host_list *hosts, int64_t wanted, int64_t slots, struct error *err)
{
    struct buf list AUTO_BUF = BUF_INIT(SHOWN_HOSTS_MAX + 512);
    for (size_t i = 0; i < hosts->count; i++) {
        if (list.length > SHOWN_HOSTS_MAX) {
            buf_puts(&list, ", ...");
            break;
        }
        buf_printf(&list, "%s%s: %d", i > 0 ? ", " : "", hosts->items[i].name,
                   hosts->items[i].slots);
    }
    return error_status(err, STATUS_NO_SLOTS,
                        "not enough slots: %lld rank%s wanted, %lld slot%s found (%s); give more "
                        "hosts or slots, or --oversubscribe",
                        (long long)wanted, wanted == 1 ? "" : "s", (long long)slots,
                        slots == 1 ? "" : "s", buf_text(&list));
}

/* How many of `wanted` ranks each host gets; the counts are the caller's. */
static int *count_per_host(const struct host_list *hosts, int64_t wanted, int64_t slots)
{
    int *counts = mem_array(hosts->count, sizeof(*counts));
    int64_t rounds = wanted / slots, left = wanted % slots;
    for (size_t i = 0; i < hosts->count; i++) {
        int64_t own = hosts->items[i].slots;
        int64_t more = own < left ? own : left;
        counts[i] = (int)(rounds * own + more);
        left -= more;
    }
    return counts;
}

static void make_nodes(struct plan *plan, const struct host_list *hosts, const int *counts)
{
    plan->nodes = mem_array(hosts->count, sizeof(*plan->nodes));
    int next = 0;
    for (size_t i = 0; i < hosts->count; i++) {
        if (counts[i] == 0)
            continue;
        plan->nodes[plan->node_count++] = (struct plan_node){
            .name = mem_strdup(hosts->items[i].name),
            .slots = hosts->items[i].slots,
            .local_size = counts[i],
            .first_rank = next,
        };
        host_traits_copy(&plan->nodes[plan->node_count - 1].traits, &hosts->items[i].traits);
        next += counts[i];
    }
}

static void make_ranks(struct plan *plan)
{
    plan->ranks = mem_array((size_t)plan->size, sizeof(*plan->ranks));
    /* nodes seen so far that have this local rank; no local rank reaches the job's size */
    int *across AUTO_FREE = mem_array((size_t)plan->size, sizeof(*across));
    for (int n = 0; n < plan->node_count; n++) {
        const struct plan_node *node = &plan->nodes[n];
        for (int local = 0; local < node->local_size; local++) {
            struct plan_rank *rank = &plan->ranks[node->first_rank + local];
            rank->rank = node->first_rank + local;
            rank->node = n;
            rank->local_rank = local;
            rank->cross_rank = across[local]++;
        }
    }
    for (int r = 0; r < plan->size; r++)
        plan->ranks[r].cross_size = across[plan->ranks[r].local_rank];
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
    const struct host_list *hosts = request->hosts;
    int64_t slots = total_slots(hosts);
    int64_t wanted = wanted_ranks(request, slots, err);
    if (wanted < 0)
        return NULL;
    if (slots == 0 || (wanted > slots && !request->oversubscribe)) {
        no_slots(hosts, wanted, slots, err);
        return NULL;
    }
    struct plan *plan = mem_alloc(sizeof(*plan));
    plan->size = (int)wanted;
    int *counts AUTO_FREE = count_per_host(hosts, wanted, slots);
    make_nodes(plan, hosts, counts);
    make_ranks(plan);
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
    free(plan->nodes);
    free(plan->ranks);
    free(plan);
}
