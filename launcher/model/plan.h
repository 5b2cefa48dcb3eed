/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan: which rank runs where. Pure.
 *
 * Rule (that of horovodrun's host assignment): hosts are filled in their order, each up to its
 * slots, before the next one gets a rank; local ranks count within a host; the cross rank of a rank
 * is its index among the hosts that have its local rank, the cross size their number (so they
 * differ between local ranks when slots are unequal). Hosts that get no rank have no node.
 *
 * Apps take consecutive ranks in their order: app 0 has 0 .. np - 1. With oversubscribe, ranks go
 * round the hosts again and again, each time up to a host's slots, until all are placed; how many
 * that gives each host is counted first, so a node's ranks stay consecutive.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "model/app.h"
#include "model/hosts.h"

struct plan_rank {
    int rank;
    int app;      /* index of its app */
    int app_rank; /* its number within the app */
    int node;     /* index into plan.nodes */
    int local_rank;
    int cross_rank, cross_size;
};

struct plan_node {
    char *name;
    int slots;
    int local_size;
    int first_rank; /* ranks of a node are consecutive: first_rank .. first_rank + local_size - 1 */
    struct host_traits traits; /* as its entry in the host list says */
};

struct plan {
    int size;
    int node_count;
    struct plan_rank *ranks; /* size entries */
    struct plan_node *nodes; /* node_count entries */
};

struct plan_request {
    const struct host_list *hosts; /* at least one */
    const struct app_list *apps;   /* at least one; app.np = 0 only for a single app */
    int np; /* 0: all slots of the hosts, or what the apps say; otherwise it must agree with them */
    bool oversubscribe; /* more ranks than slots: wrap around the hosts */
};

#define PLAN_SIZE_MAX 10000000

/* NULL and STATUS_USAGE when the counts contradict each other or pass PLAN_SIZE_MAX;
 * NULL and STATUS_NO_SLOTS when the hosts have too few slots: the text shows wanted and found per
 * host. The caller owns the plan. */
struct plan *plan_create(const struct plan_request *request, struct error *err);
void plan_destroy(struct plan *plan);
