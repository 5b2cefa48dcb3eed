/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the calls of MPI need: worlds and communicators, types, and waits for requests.
 *
 * A blocking call of MPI cannot be woken. A request can be tested until it is complete, late, or
 * given up after abort(). Between two tests the wait gives the processor away, except in its first
 * 50 microseconds. A wait for data spins so for a second, as MPI does: data comes soon, because the
 * ranks have agreed before. A wait with a limit spins for 0.2 ms. Then it sleeps for longer and
 * longer times, at most 1 ms.
 */
#pragma once

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>

#include "engine/engine.h"

/*
 * The types and operations of libhvd as those of MPI.
 *
 * MPI reduces fp32 and fp64. Operations of this engine reduce all other types, with the code in
 * engine/elements.h. MPI does not have fp16 and bf16. Open MPI 4.1 reduces integers wrongly with
 * AVX: sums of 8 and 16 bits saturate, and minimum and maximum compare unsigned integers as signed
 * ones.
 */
enum { MPI_OWN_TYPES = 11, MPI_OWN_OPS = 4 };

struct mpi_types {
    MPI_Op ops[MPI_OWN_TYPES][MPI_OWN_OPS];
};

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

/* Before MPI calls: takes the lock of a world without MPI_THREAD_MULTIPLE. */
void request_lock(struct engine_world *world);
void request_unlock(struct engine_world *world);

/* HVD_OK, or the communicator cannot be used: it is broken, or abort() was called. */
enum hvd_status request_may_start(const struct engine_comm *comm, struct error *err);

/* HVD_ERR_ENGINE, and the text of the error code of an MPI call named `what`. */
enum hvd_status request_failed(int code, const char *what, struct error *err);

/* The status for the error code of an MPI call named `what`. Breaks the communicator on failure. */
enum hvd_status request_result(struct engine_comm *comm, int code, const char *what,
                               struct error *err);

/* Waits until all requests are complete. On failure the requests remain in MPI, which would write
 * into their buffers in any later call. So a failure, also a time-out, aborts the world.
 * `timeout_ms` 0: no limit. `what` is the name of the MPI call that began them. */
enum hvd_status request_wait(struct engine_comm *comm, MPI_Request *requests, int count,
                             int64_t timeout_ms, const char *what, struct error *err);

void mpi_types_init(struct mpi_types *types);
/* An error code of MPI. */
int mpi_types_create(struct mpi_types *types);
void mpi_types_destroy(struct mpi_types *types); /* mpi_types_init() is enough */

/* Whether the pair exists. Then fills both. */
bool mpi_types_find(const struct mpi_types *types, enum hvd_type type, enum hvd_op op,
                    MPI_Datatype *mpi_type, MPI_Op *mpi_op);

/* operations.c: the operations of the engine mpi. See engine/engine.h for each. */

enum hvd_status mpi_allreduce(struct engine_comm *comm, void *data, size_t count,
                              enum hvd_type type, enum hvd_op op, struct error *err);
enum hvd_status mpi_allgatherv(struct engine_comm *comm, const void *in, void *out,
                               const size_t *bytes, struct error *err);
enum hvd_status mpi_broadcast(struct engine_comm *comm, void *data, size_t bytes, int root,
                              struct error *err);
enum hvd_status mpi_alltoallv(struct engine_comm *comm, const void *in, const size_t *send_bytes,
                              void *out, const size_t *receive_bytes, int64_t timeout_ms,
                              struct error *err);
enum hvd_status mpi_reducescatter(struct engine_comm *comm, const void *in, void *out,
                                  const size_t *counts, enum hvd_type type, enum hvd_op op,
                                  struct error *err);
