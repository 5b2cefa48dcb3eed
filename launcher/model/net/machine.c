/* SPDX-License-Identifier: Apache-2.0 */
#include "model/net/machine.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static bool same_kernel(const struct machine *one, const struct machine *other)
{
    return one->boot_id[0] != '\0' && strcmp(one->boot_id, other->boot_id) == 0;
}

bool machine_same(const struct machine *one, const struct machine *other)
{
    if (one == other)
        return true;
    bool same = same_kernel(one, other) && strcmp(one->hostname, other->hostname) == 0 &&
                one->interface_count == other->interface_count;
    for (size_t i = 0; same && i < one->interface_count; i++)
        same = strcmp(one->interfaces[i], other->interfaces[i]) == 0;
    return same;
}

static bool has_all_cpus(const struct machine *one)
{
    return one->cpus_allowed >= one->cpus_online;
}

static bool shares_cpus(const struct machine *one, const struct machine *other)
{
    return machine_same(one, other) ||
           (same_kernel(one, other) && has_all_cpus(one) && has_all_cpus(other));
}

struct place {
    const struct machine *node;
    int number;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *one = a, *other = b;
    int order = strcmp(one->node->boot_id, other->node->boot_id);
    return order != 0 ? order : one->number - other->number;
}

/* Only nodes with one kernel are compared with each other, since there may be thousands of nodes.
 * Of those, each is compared with the first one of every group so far. */
static void find_first(const struct machine *nodes, int count, int *first,
                       bool (*alike)(const struct machine *one, const struct machine *other))
{
    struct place *places AUTO_FREE = mem_array((size_t)count, sizeof(*places));
    int *groups AUTO_FREE = mem_array((size_t)count, sizeof(*groups));
    int group_count = 0;
    for (int i = 0; i < count; i++)
        places[i] = (struct place){&nodes[i], i};
    qsort(places, (size_t)count, sizeof(*places), compare_places);
    for (int i = 0; i < count; i++) {
        const struct machine *node = places[i].node;
        if (i == 0 || !same_kernel(places[i - 1].node, node))
            group_count = 0;
        int group = 0;
        while (group < group_count && !alike(&nodes[groups[group]], node))
            group++;
        if (group == group_count)
            groups[group_count++] = places[i].number;
        first[places[i].number] = groups[group];
    }
}

void machine_find_first(const struct machine *nodes, int count, int *first)
{
    find_first(nodes, count, first, machine_same);
}

void machine_count_ranks(const struct machine *nodes, const int *ranks, int count, int *totals)
{
    int *first AUTO_FREE = mem_array((size_t)count, sizeof(*first));
    find_first(nodes, count, first, shares_cpus);
    for (int i = 0; i < count; i++)
        totals[i] = 0;
    for (int i = 0; i < count; i++)
        totals[first[i]] += ranks[i];
    for (int i = 0; i < count; i++)
        totals[i] = totals[first[i]]; /* a first one is its own */
}
