/* SPDX-License-Identifier: Apache-2.0 */
/* Worlds and communicators of the engine mpi. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include <mpi.h>

#include "engine/engine.h"
#include "engine/mpi/types.h"

struct engine_world {
    struct engine_place place;
    MPI_Comm all;
    bool own_init;      /* this engine has initialized MPI, and finalizes it */
    bool one_at_a_time; /* MPI has no MPI_THREAD_MULTIPLE: `lock` is held during each MPI call */
    pthread_mutex_t lock;
    atomic_bool aborted;
    struct mpi_types types;
    size_t piece; /* largest part of one message, in bytes */
};

struct engine_comm {
    struct engine_world *world;
    MPI_Comm comm;
    int rank, size; /* in the set */
    bool broken;    /* an earlier call failed */
};
