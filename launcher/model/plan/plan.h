/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan: which rank runs where. Pure.
 *
 * Rule: the mapping (model/plan/mapping.h) says on which host each rank runs; the default is that
 * of horovodrun's host assignment, host after host, each up to its slots. Local ranks count within
 * a host in the order of its ranks. The cross rank of a rank is the index of its host among those
 * that have its local rank, the cross size is their number. So they differ between local ranks when
 * slots are unequal. Nodes are in the order of their lowest ranks, so node 0 has rank 0. A host
 * without a rank has no node, unless the request says so.
 *
 * Apps take consecutive ranks in their order: app 0 has 0 .. np - 1.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/strv.h"
#include "model/hosts/hosts.h"
#include "model/plan/mapping.h"

/* An app is one program of the job with its arguments: `a : b` on the command line is two apps. */
struct app {
    struct strv argv;
    struct strv env; /* this app's own -x NAME=value, on top of the job's */
    char *wdir;      /* NULL: the job's */
    int np;          /* 0: not given */
};

struct app_list {
    struct app *items;
    size_t count;
};
struct app *app_list_add(struct app_list *list); /* borrowed until the next add */
void app_list_destroy(struct app_list *list);

struct plan_rank {
    int rank;
    int app;      /* index of its app */
    int app_rank; /* its number within the app */
    int node;     /* index into plan.nodes */
    int local_rank;
    int slot; /* of its node: no two ranks that run have the same */
    int cross_rank, cross_size;
    char *cpus; /* that a rankfile gives it (model/plan/rank_list.h); NULL: none */
};

struct plan_node {
    char *name;
    int slots;
    int local_size;
    const int *ranks; /* local_size of them, ascending: the index is the local rank; plan's */
    struct host_traits traits; /* as its entry in the host list says */
};

struct plan {
    int size;
    int node_count;
    struct plan_rank *ranks; /* size entries */
    struct plan_node *nodes; /* node_count entries */
    int *ranks_by_node;      /* size entries: the ranks of node 0, of node 1, ... */
    int cpus_per_proc;       /* that the mapping gives each rank; 0: not said */
    bool round_numa;         /* on each node, ranks go round its memory nodes */
};

struct plan_request {
    const struct host_list *hosts; /* at least one */
    const struct app_list *apps;   /* at least one; app.np = 0 only for a single app */
    int np; /* 0: all slots of the hosts, or what the apps say; otherwise it must agree with them */
    bool oversubscribe;            /* more ranks than slots: begin again with the hosts */
    bool idle_hosts;               /* a node for each host, after those that have ranks */
    const struct mapping *mapping; /* NULL: slot */
};

/* NULL and STATUS_USAGE: the counts contradict each other or pass PLAN_SIZE_MAX. NULL and
 * STATUS_NO_SLOTS: the hosts have too few slots, and the text shows wanted and found per host. The
 * caller owns the plan. */
struct plan *plan_create(const struct plan_request *request, struct error *err);
void plan_destroy(struct plan *plan);

/* Fills local_size and ranks of all nodes and ranks_by_node from the node of each rank. */
void plan_gather(struct plan *plan);

/* Fills in local and cross ranks; the ranks are gathered. */
void plan_number_ranks(struct plan *plan);

/* Do the ranks of each node follow each other, in the order of the nodes? */
bool plan_is_by_blocks(const struct plan *plan);

/* "rank 4", "ranks 0-3", "ranks 0,2,4-6,...": shortened after some. */
void plan_node_describe(const struct plan_node *node, struct buf *out);
