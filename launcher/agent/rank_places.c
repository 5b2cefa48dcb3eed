/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/rank_places.h"

#include <stdlib.h>

#include "base/mem.h"
#include "model/plan/plan.h"

static int contradiction(struct error *err)
{
    return error_set(err, "the plan's hosts and ranks do not fit together");
}

/* Before anything is as large as the message says. */
static int check_sizes(const Hvdrun__Prepare *prepare, struct error *err)
{
    uint64_t ranks = 0;
    for (size_t i = 0; i < prepare->n_host_ranks; i++)
        ranks += prepare->host_ranks[i];
    bool listed = prepare->n_rank_nodes > 0;
    if (prepare->size == 0 || prepare->size > PLAN_SIZE_MAX || ranks != prepare->size ||
        prepare->n_hosts != prepare->n_host_ranks || prepare->n_hosts > INT32_MAX ||
        prepare->node_index >= prepare->n_host_ranks ||
        (listed && prepare->n_rank_nodes != prepare->size))
        return contradiction(err);
    if (prepare->local_size != prepare->host_ranks[prepare->node_index])
        return error_set(err, "the ranks of the plan and of the workers on this node differ");
    return 0;
}

static void place_blocks(const Hvdrun__Prepare *prepare, struct rank_places *out)
{
    int rank = 0;
    for (int n = 0; n < out->node_count; n++) {
        for (uint32_t i = 0; i < prepare->host_ranks[n]; i++)
            out->node_of[rank++] = n;
    }
}

static int place_listed(const Hvdrun__Prepare *prepare, struct rank_places *out, struct error *err)
{
    for (size_t rank = 0; rank < prepare->n_rank_nodes; rank++) {
        if (prepare->rank_nodes[rank] >= prepare->n_hosts)
            return contradiction(err);
        out->node_of[rank] = (int)prepare->rank_nodes[rank];
    }
    return 0;
}

/* From the node of each rank. */
static int list_ranks(const Hvdrun__Prepare *prepare, struct rank_places *out, struct error *err)
{
    int *filled AUTO_FREE = mem_array((size_t)out->node_count, sizeof(*filled));
    for (int n = 0; n < out->node_count; n++)
        out->first[n + 1] = out->first[n] + (int)prepare->host_ranks[n];
    for (int rank = 0; rank < out->size; rank++) {
        int node = out->node_of[rank];
        if (filled[node] == (int)prepare->host_ranks[node])
            return contradiction(err);
        out->ranks[out->first[node] + filled[node]++] = rank;
    }
    return 0;
}

int rank_places_read(const Hvdrun__Prepare *prepare, struct rank_places *out, struct error *err)
{
    *out = (struct rank_places){.size = 0};
    if (check_sizes(prepare, err) < 0)
        return -1;
    out->size = (int)prepare->size;
    out->node_count = (int)prepare->n_hosts;
    out->here = (int)prepare->node_index;
    out->node_of = mem_array((size_t)out->size, sizeof(*out->node_of));
    out->ranks = mem_array((size_t)out->size, sizeof(*out->ranks));
    out->first = mem_array((size_t)out->node_count + 1, sizeof(*out->first));
    if (prepare->n_rank_nodes == 0)
        place_blocks(prepare, out);
    else if (place_listed(prepare, out, err) < 0)
        return -1;
    return list_ranks(prepare, out, err);
}

void rank_places_destroy(struct rank_places *places)
{
    free(places->node_of);
    free(places->ranks);
    free(places->first);
    *places = (struct rank_places){.size = 0};
}

const int *rank_places_of(const struct rank_places *places, int node)
{
    return places->ranks + places->first[node];
}

int rank_places_count(const struct rank_places *places, int node)
{
    return places->first[node + 1] - places->first[node];
}
