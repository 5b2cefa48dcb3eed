/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranks of each node, as PREPARE describes them. It has either the number of ranks of each node
 * (the ranks then follow the order of the nodes), or the node of each rank.
 */
#pragma once

#include "base/error.h"
#include "wire/control.pb-c.h"

struct rank_places {
    int size, node_count;
    int *node_of; /* by rank */
    int *ranks;   /* of node 0, ascending, then those of node 1, ... */
    int *first;   /* by node: where its ranks begin in `ranks`; one more entry for the end */
    int here;     /* this node */
};

/* -1: the message contradicts itself. `out` is destroyed in either case. */
int rank_places_read(const Hvdrun__Prepare *prepare, struct rank_places *out, struct error *err);
void rank_places_destroy(struct rank_places *places);

/* The ranks of a node, ascending: the index is the local rank. */
const int *rank_places_of(const struct rank_places *places, int node);
int rank_places_count(const struct rank_places *places, int node);
