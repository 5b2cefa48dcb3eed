/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment of a worker: one superset in which every framework finds its names. Pure.
 *
 * Precedence, lowest first: the inherited environment (base), the knobs from flags, the job's own
 * variables (MASTER_ADDR, interfaces), the user's -x, the rank variables of worker_vars.def.
 * "Defaults" (OMP_NUM_THREADS, PYTHONUNBUFFERED...) are set only if nothing else sets them. Each
 * name comes out once. docs/environment.md explains the choice name by name.
 *
 * What is equal for all ranks of a node is built once. A rank costs one array of pointers and one
 * block of text, so a thousand ranks are cheap. PMI-1's and PMIx's names are never mixed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/strv.h"
#include "model/settings/words.h"

/* About the job and this node. All pointers are borrowed until worker_env_destroy(). */
struct worker_env_job {
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
    int ras_port;              /* for NCCL's RAS; 0: none */
    const char *runtime_dir;   /* NULL: none */
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

/* About one rank. Pointers are borrowed until its worker_vars_destroy(). */
struct worker_env_rank {
    int rank, local_rank, cross_rank, cross_size;
    int slot; /* of the host; the local rank unless slots before it are not used */
    const struct strv *app_env; /* the user's -x and the app's own; may be NULL */
    enum mpi_kind mpi;          /* MPI_AUTO counts as MPI_NONE */
    char *const *extra;    /* "NAME=value" of MPI and of --gpus-per-proc, strongest; may be NULL */
    char *const *hints;    /* "NAME=value" for names that are not set yet; may be NULL */
    const char *command;   /* argv[0]; NULL: not said */
    const char *arguments; /* argv[1..] joined by blanks; NULL: none */
    const char *wdir;      /* NULL: not said */
    const char *progress_file; /* NULL: none */
    /* The status endpoint of Kubeflow: its address, and the path of the file with its token. Left
     * out if the worker gets one from elsewhere. NULL: none. */
    const char *status_url, *status_token;
};

struct worker_env;
struct worker_vars;

struct worker_env *worker_env_create(const struct worker_env_job *job);
void worker_env_destroy(struct worker_env *env);

/* The environment of one rank; the caller owns it and must destroy it before `env`. */
struct worker_vars *worker_env_rank(const struct worker_env *env,
                                    const struct worker_env_rank *rank);
char *const *worker_vars_items(const struct worker_vars *vars); /* NULL-ended; for execve */
void worker_vars_destroy(struct worker_vars *vars);

/* The path in TORCHELASTIC_ERROR_FILE of a rank, where it can report its error. The caller owns it;
 * NULL when the job has no runtime directory. */
char *worker_env_error_file(const struct worker_env_job *job, int rank);

/* Are the first `length` bytes of `name` a rank variable, which the user's -x cannot set?
 * `inherited` (may be NULL) becomes whether it is one that is only rewritten when inherited. */
bool worker_env_is_rank_variable(const char *name, size_t length, bool *inherited);

/* The names of worker_vars.def; NULL after the last. `inherited` as above. */
const char *worker_env_name(size_t i, bool *inherited);
