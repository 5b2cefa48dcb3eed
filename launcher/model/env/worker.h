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
#include "model/env/node_env.h"
#include "model/settings/words.h"

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

struct worker_vars;

/* The environment of one rank; the caller owns it and must destroy it before `env`. */
struct worker_vars *worker_env_rank(const struct node_env *env, const struct worker_env_rank *rank);
char *const *worker_vars_items(const struct worker_vars *vars); /* NULL-ended; for execve */
void worker_vars_destroy(struct worker_vars *vars);

/* The path in TORCHELASTIC_ERROR_FILE of a rank, where it can report its error. The caller owns it;
 * NULL when the job has no runtime directory. */
char *worker_env_error_file(const struct node_env_job *job, int rank);
