/* SPDX-License-Identifier: Apache-2.0 */
#include "model/net/network.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "model/net/address.h"

#define ANCHORS_MAX 16 /* subnets that are compared with */
#define SHOWN_MAX 400  /* bytes of a host's addresses in an error, about */
#define NOTHING (NETWORK_UNUSABLE + 1)

struct view {
    const struct network_node *node;
    struct network_address *all, *list; /* all that were understood; those that may be used */
    size_t all_count, count;
    const struct network_address *pick; /* NULL: not yet */
};

struct anchor {
    const struct network_address *address;
    int nodes;
};

struct network_choice {
    struct view *views;
    size_t count;
    bool others;      /* may join from other machines */
    bool families[2]; /* IPv4, IPv6: may be used */
    struct anchor anchors[ANCHORS_MAX];
    size_t anchor_count;
};

static void view_fill(struct view *view, const struct network_node *node, char *const *filter)
{
    view->node = node;
    view->all = mem_array(node->interface_count, sizeof(*view->all));
    view->list = mem_array(node->interface_count, sizeof(*view->list));
    for (size_t i = 0; i < node->interface_count; i++) {
        if (network_address_parse_line(node->interfaces[i], &view->all[view->all_count]))
            view->all_count++;
    }
    view->count = network_filter_apply(filter, view->all, view->all_count, view->list);
}

static bool has_address(const struct view *view, const struct network_address *address)
{
    size_t i = 0;
    while (i < view->all_count && !network_address_equal(&view->all[i], address))
        i++;
    return i < view->all_count;
}

/* The same kernel alone does not say it: containers and network namespaces share one. */
static bool same_machine(const struct view *a, const struct view *b)
{
    if (a == b)
        return true;
    bool same = a->node->boot_id[0] != '\0' && strcmp(a->node->boot_id, b->node->boot_id) == 0 &&
                a->all_count == b->all_count;
    for (size_t i = 0; same && i < a->all_count; i++)
        same = has_address(b, &a->all[i]);
    return same;
}

static bool all_one_machine(const struct network_choice *choice)
{
    size_t i = 1;
    if (choice->others)
        return false;
    while (i < choice->count && same_machine(&choice->views[0], &choice->views[i]))
        i++;
    return i >= choice->count;
}

static int refuse(const struct network_choice *choice, size_t bad, struct error *err)
{
    const struct view *view = &choice->views[bad];
    struct buf list AUTO_BUF = BUF_INIT(SHOWN_MAX + 512);
    size_t others = 0;
    for (size_t i = bad + 1; i < choice->count; i++)
        others += choice->views[i].count == 0;
    for (size_t i = 0; i < view->all_count && list.length < SHOWN_MAX; i++)
        buf_printf(&list, "%s%s %s/%d", i > 0 ? ", " : "", view->all[i].iface, view->all[i].text,
                   view->all[i].prefix);
    char more[64] = "";
    if (others > 0)
        snprintf(more, sizeof(more), ", and neither do %zu other hosts", others);
    return error_usage(err,
                       "%s has no network interface that --network-interfaces allows%s; it has: %s",
                       view->node->name, more, view->all_count > 0 ? buf_text(&list) : "none");
}

struct owned {
    struct network_address *address;
    const struct view *view;
};

static int compare_owned(const void *left, const void *right)
{
    const struct owned *a = left, *b = right;
    int difference = memcmp(a->address->bytes, b->address->bytes, sizeof(a->address->bytes));
    return difference != 0 ? difference : (int)a->address->ipv6 - (int)b->address->ipv6;
}

/* An address that several machines have (172.17.0.1 on each docker0) does not identify one. */
static void mark_doubles(struct network_choice *choice)
{
    size_t total = 0, used = 0;
    for (size_t i = 0; i < choice->count; i++)
        total += choice->views[i].count;
    struct owned *owned AUTO_FREE = mem_array(total, sizeof(*owned));
    for (size_t i = 0; i < choice->count; i++) {
        for (size_t k = 0; k < choice->views[i].count; k++)
            owned[used++] = (struct owned){&choice->views[i].list[k], &choice->views[i]};
    }
    qsort(owned, total, sizeof(*owned), compare_owned);
    for (size_t first = 0, end = 0; first < total; first = end) {
        bool doubled = false;
        for (end = first; end < total && compare_owned(&owned[first], &owned[end]) == 0; end++)
            doubled = doubled || !same_machine(owned[first].view, owned[end].view);
        for (size_t i = first; doubled && i < end; i++)
            owned[i].address->fitness = NETWORK_DOUBLE;
    }
}

static int best_fitness(const struct view *view, bool ipv6)
{
    int best = NOTHING;
    for (size_t i = 0; i < view->count; i++) {
        if (view->list[i].ipv6 == ipv6 && (int)view->list[i].fitness < best)
            best = (int)view->list[i].fitness;
    }
    return best;
}

/* One family for all, since an IPv4 address is useless to a node that has only IPv6. */
static void choose_family(struct network_choice *choice)
{
    int worst[2] = {0, 0};
    for (size_t i = 0; i < choice->count; i++) {
        for (int six = 0; choice->views[i].count > 0 && six < 2; six++) {
            int best = best_fitness(&choice->views[i], six == 1);
            worst[six] = best > worst[six] ? best : worst[six];
        }
    }
    bool none = worst[0] == NOTHING && worst[1] == NOTHING;
    choice->families[0] = none || worst[0] <= worst[1];
    choice->families[1] = none || worst[1] < worst[0];
}

static const struct network_address *reached(const struct network_choice *choice,
                                             const struct view *view)
{
    struct network_address target;
    const char *text = view->node->reached_by;
    if (text == NULL || !network_address_parse(text, &target) || target.fitness == NETWORK_LOOPBACK)
        return NULL;
    const struct network_address *same_iface = NULL;
    for (size_t i = 0; i < view->count; i++) {
        const struct network_address *at = &view->list[i];
        if (at->fitness < NETWORK_DOUBLE && choice->families[at->ipv6] &&
            network_address_equal(at, &target))
            return at;
    }
    for (size_t i = 0; i < view->all_count; i++) {
        if (!network_address_equal(&view->all[i], &target))
            continue;
        for (size_t k = 0; same_iface == NULL && k < view->count; k++) {
            const struct network_address *at = &view->list[k];
            if (at->fitness < NETWORK_DOUBLE && choice->families[at->ipv6] &&
                strcmp(at->iface, view->all[i].iface) == 0)
                same_iface = at;
        }
    }
    return same_iface;
}

/* NULL: no node was reached in its subnet. */
static const struct anchor *find_anchor(const struct network_choice *choice,
                                        const struct network_address *address)
{
    for (size_t i = 0; i < choice->anchor_count; i++) {
        if (network_address_same_subnet(choice->anchors[i].address, address))
            return &choice->anchors[i];
    }
    return NULL;
}

static void add_anchor(struct network_choice *choice, const struct network_address *address)
{
    const struct anchor *found = find_anchor(choice, address);
    if (found != NULL)
        choice->anchors[found - choice->anchors].nodes++;
    else if (choice->anchor_count < ANCHORS_MAX)
        choice->anchors[choice->anchor_count++] = (struct anchor){address, 1};
}

static bool in_subnet(const struct view *view, const struct network_address *address)
{
    size_t i = 0;
    while (i < view->count && (view->list[i].fitness >= NETWORK_DOUBLE ||
                               !network_address_same_subnet(&view->list[i], address)))
        i++;
    return i < view->count || view->count == 0;
}

/* The addresses of one node in whose subnet every node has an address: all shared subnets. */
static size_t shared_subnets(const struct network_choice *choice,
                             const struct network_address **shared)
{
    size_t first = 0, count = 0;
    while (first < choice->count && choice->views[first].count == 0)
        first++;
    for (size_t i = 0; first < choice->count && i < choice->views[first].count; i++) {
        const struct network_address *address = &choice->views[first].list[i];
        size_t node = first;
        while (node < choice->count && in_subnet(&choice->views[node], address))
            node++;
        if (node == choice->count && count < ANCHORS_MAX)
            shared[count++] = address;
    }
    return count;
}

struct merit {
    int anchored; /* more is better, then: */
    int fitness;  /* less is better */
    bool shared;
};

static bool is_better(const struct merit *a, const struct merit *b)
{
    if (a->anchored != b->anchored)
        return a->anchored > b->anchored;
    if (a->fitness != b->fitness)
        return a->fitness < b->fitness;
    return a->shared && !b->shared;
}

static const struct network_address *fittest(const struct network_choice *choice,
                                             const struct view *view,
                                             const struct network_address *const *shared,
                                             size_t shared_count)
{
    const struct network_address *best = NULL;
    struct merit merit = {.fitness = NOTHING};
    for (size_t i = 0; i < view->count; i++) {
        const struct network_address *at = &view->list[i];
        if (!choice->families[at->ipv6])
            continue;
        bool doubled = at->fitness >= NETWORK_DOUBLE;
        const struct anchor *anchor = doubled ? NULL : find_anchor(choice, at);
        struct merit own = {.anchored = anchor != NULL ? anchor->nodes : 0,
                            .fitness = (int)at->fitness};
        for (size_t k = 0; k < shared_count; k++)
            own.shared = own.shared || network_address_same_subnet(shared[k], at);
        if (best == NULL || is_better(&own, &merit)) {
            best = at;
            merit = own;
        }
    }
    return best;
}

static void choose_across(struct network_choice *choice)
{
    const struct network_address *shared[ANCHORS_MAX];
    mark_doubles(choice);
    choose_family(choice);
    for (size_t i = 0; i < choice->count; i++) {
        struct view *view = &choice->views[i];
        view->pick = reached(choice, view);
        if (view->pick != NULL)
            add_anchor(choice, view->pick);
    }
    size_t shared_count = shared_subnets(choice, shared);
    for (size_t i = 0; i < choice->count; i++) {
        struct view *view = &choice->views[i];
        if (view->pick == NULL)
            view->pick = fittest(choice, view, shared, shared_count);
    }
}

/* Everything is on one machine: loopback is the fastest, unless the user wants another one. */
static void choose_here(struct network_choice *choice)
{
    choice->families[0] = choice->families[1] = true;
    for (size_t i = 0; i < choice->count; i++)
        choice->views[i].pick = fittest(choice, &choice->views[i], NULL, 0);
}

static int choose(struct network_choice *choice, bool here, char *const *filter, struct error *err)
{
    if (here && !network_filter_includes(filter))
        return 0;
    bool filtered = filter != NULL && *filter != NULL;
    for (size_t i = 0; filtered && i < choice->count; i++) {
        if (choice->views[i].count == 0)
            return refuse(choice, i, err);
    }
    if (here)
        choose_here(choice);
    else
        choose_across(choice);
    return 0;
}

int network_choose(const struct network_node *nodes, int count, bool others, char *const *filter,
                   char **addresses, struct error *err)
{
    if (network_filter_check(filter, err) < 0)
        return -1;
    struct network_choice choice = {.count = (size_t)count, .others = others};
    choice.views = mem_array(choice.count, sizeof(*choice.views));
    for (size_t i = 0; i < choice.count; i++)
        view_fill(&choice.views[i], &nodes[i], filter);
    bool here = all_one_machine(&choice);
    int result = choose(&choice, here, filter, err);
    for (size_t i = 0; i < choice.count; i++) {
        const struct view *view = &choice.views[i];
        const char *none = here ? "127.0.0.1" : "";
        if (result == 0)
            addresses[i] = mem_strdup(view->pick != NULL ? view->pick->text : none);
        free(view->all);
        free(view->list);
    }
    free(choice.views);
    return result;
}
