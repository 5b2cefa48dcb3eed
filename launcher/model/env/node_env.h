/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of an environment that all workers of a node share. It is built once, and worker.h adds
 * what belongs to one rank. worker.h also has the order of precedence. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/strv.h"
#include "model/env/rank_variables.h"
#include "model/env/table.h"

struct no_proxy {
    const char *addresses[3]; /* NULL-ended, borrowed */
    size_t slots[2];          /* of no_proxy and NO_PROXY in the table */
    bool has_proxy;           /* without one, both are omitted: JAX warns of them */
};

/* Changes a worker's variables, which are in the order of the table, for what the user gives with
 * -x (`user` may be NULL). `owned` gets the strings that `items` borrows. */
void no_proxy_user(const struct no_proxy *no_proxy, const struct env_table *table,
                   const struct strv *user, char **items, struct strv *owned);

/* About the job and this node. All pointers are borrowed until node_env_destroy(). */
struct node_env_job {
    const char *job_id;
    int epoch, restart_count, max_restarts;
    int size, node_count, node_index;
    int local_size;
    const int *node_ranks;  /* of this node, ascending, local_size entries; NULL: unknown */
    const char *hostname;   /* as the plan names the node */
    const char *machine;    /* uname -m; NULL: not said */
    const int *node_sizes;  /* local sizes of all nodes; NULL: unknown */
    const char *node_names; /* all nodes, comma-separated; NULL: unknown */

    bool mpi_controller;         /* HOROVOD_CONTROLLER=mpi instead of gloo */
    bool elastic;                /* HOROVOD_ELASTIC=1 */
    bool keep_scheduler_env;     /* inherited variables of a scheduler stay as they are */
    const char *rendezvous_addr; /* an IPv4 literal; NULL: none */
    int rendezvous_port;         /* 0: none */
    const char *iface, *ifaces;  /* one name; comma-separated names; NULL: not chosen */
    bool ifaces_from_flag;       /* false: an inherited NCCL_SOCKET_IFNAME stays */
    /* subnets for Open MPI's TCP, comma-separated: the only ones, or (without those) ones it must
     * keep off; NULL: it may choose */
    const char *subnets, *unfit_subnets;

    const char *master_addr;   /* NULL: none */
    int master_port, jax_port; /* 0: none */
    char *const *variables;    /* NAME=value, of parts of the launcher: stronger than these */
    size_t variable_count;
    int ras_port;              /* for NCCL's RAS; 0: none */
    const char *runtime_dir;   /* NULL: none */
    bool records;              /* PyTorch's flight recorder is armed, with files in runtime_dir */
    const char *deadline_file; /* with the deadline of the node; NULL: none */
    const char *line_address;  /* of the line to the agent; NULL: none */
    int cpus_allowed;          /* 0: unknown */
    int cpu_ranks;        /* of the job, on these CPUs: those of other nodes on this machine too */
    bool bound;           /* the hints of each rank have OMP_NUM_THREADS */
    bool yield_when_idle; /* more ranks than CPUs */

    const struct strv *base;  /* the scrubbed environment that is passed on (env_scrub) */
    const struct strv *knobs; /* from flags (horovod_env) */
    int app_count;
    const int *app_np; /* app_count entries */
};

/* Only worker.c looks inside. */
struct node_env {
    struct node_env_job job;
    struct env_table table;
    struct strv owned;                 /* strings made here that the table borrows */
    char *text[VALUES];                /* values of the node; NULL: the variable is omitted */
    const char *fixed[RANK_VARIABLES]; /* "NAME=value" where it is equal for all ranks */
    size_t slot[RANK_VARIABLES];       /* its place in the table */
    bool *reserved;                    /* by slot: a rank variable */
    bool wanted[RANK_VARIABLES];       /* INHERITED ones: was it inherited? */
    struct no_proxy no_proxy;
    size_t cpu_operations;
    size_t tcp_include, tcp_exclude; /* slots */
    bool own_tcp;                    /* one of them is ours */
    const char *package_folder;      /* of hvdrun's Python package; NULL: not in PYTHONPATH */
    size_t python_path;              /* a slot */
    bool has_status;                 /* the environment has a status endpoint of Kubeflow */
};

/* What a client of that endpoint reads. */
#define STATUS_URL "KUBEFLOW_TRAINER_SERVER_URL="
#define STATUS_TOKEN "KUBEFLOW_TRAINER_SERVER_TOKEN="
#define STATUS_CA_CERT "KUBEFLOW_TRAINER_SERVER_CA_CERT="

struct node_env *node_env_create(const struct node_env_job *job);
void node_env_destroy(struct node_env *env); /* accepts NULL */
