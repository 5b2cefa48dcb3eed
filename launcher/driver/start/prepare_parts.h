/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lists in PREPARE, in the form of its messages: made once for all nodes; each node gets its
 * share.
 */
#pragma once

#include "driver/start/prepare_epoch.h"
#include "wire/control.pb-c.h"

#define PREPARE_LIMITS_MAX 16

/* The share of one node. */
struct node_share {
    size_t first_worker, workers;
    size_t first_stdin, stdin_count;
};

/* Everything in it lives as long as the struct; what it does not own belongs to the job. */
struct prepare_parts {
    Hvdrun__Limit limits[PREPARE_LIMITS_MAX]; /* the soft limits of the user's shell */
    Hvdrun__Limit *limit_pointers[PREPARE_LIMITS_MAX];
    size_t limit_count;
    Hvdrun__App *apps;
    Hvdrun__App **app_pointers;
    struct strv *envs; /* by app: the user's -x, then the app's own */
    char **wdirs;      /* by app; "": the job's */
    size_t app_count;
    char **hosts;
    char **addresses; /* of each host, for the workers' own traffic */
    size_t host_count;
    uint32_t *host_ranks;
    int *cpu_ranks;          /* by node: ranks that use its CPUs, those of its twins too */
    uint32_t *rank_nodes;    /* NULL: the ranks of each node follow each other */
    Hvdrun__Worker *workers; /* to be started: those of node 0, in the order of their ranks, ... */
    Hvdrun__Worker **worker_pointers;
    uint32_t *app_sizes;
    uint32_t *stdin_seats;     /* those of node 0, of node 1, ... */
    struct node_share *shares; /* by node */
    char *interfaces;
    char **hostnames; /* as MPI knows the nodes; NULL: by their names in `hosts` */
    char *wdir;       /* of the job, absolute */
};

/* `parts` is empty. All nodes of the plan have said HELLO. prepare_send() adds the
 * addresses. */
void prepare_parts_fill(const struct job *job, const struct prepare_epoch *epoch,
                        struct prepare_parts *parts);
void prepare_parts_free(struct prepare_parts *parts);

/* A folder as every node gets it: below our working directory if it is relative. The caller
 * frees it. */
char *prepare_folder(const struct job *job, const char *wdir);
