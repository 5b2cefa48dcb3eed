/* SPDX-License-Identifier: Apache-2.0 */
/* The MPI side of one epoch on this node: what the servers need to know about its workers. */
#pragma once

#include <sys/types.h>

#include "agent/post.h"
#include "agent/rank_places.h"
#include "model/binding/binding.h"
#include "model/settings/words.h"
#include "wire/control.pb-c.h"

/* How the servers reach the workers, which are named by their index in PREPARE. */
struct mpi_job_ops {
    /* A worker asked that a rank of this node (or -2: all of them) gets a signal. */
    void (*signal)(void *context, int rank, int signal);
    pid_t (*pid)(void *context, int index); /* 0: does not run */
    /* Reads what it has written, so that there is room for more. */
    void (*read)(void *context, int index);
};

struct mpi_job {
    const struct mpi_job_ops *ops;
    void *context;
    const struct post *post;          /* of the epoch; borrowed until mpi_world_destroy() */
    const Hvdrun__Prepare *prepare;   /* borrowed until mpi_world_destroy() */
    const struct rank_places *places; /* of `prepare`; borrowed likewise */
    const enum mpi_kind *kinds;       /* of each app; borrowed likewise */
    char *const *reasons;             /* for these kinds, of each app; borrowed likewise */
    const int *app_np;                /* ranks of each app in the whole job */
    const char *module_path, *shm_dir, *job_id;
    const char *hostname;          /* gethostname(), for a job of one node */
    const struct binding *binding; /* by slot; NULL: not bound */
    bool oversubscribed;           /* more ranks than CPUs on this machine */
};
