/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine moves and reduces data between the ranks of a job. Each engine is one const table of
 * functions: self (size 1), mpi (Open MPI), gloo. engine/load.h finds the table for a job.
 *
 * World. open() makes the world: all ranks of the job. A process has at most one world of each
 * engine at a time. All other objects belong to their world.
 *
 * Communicator. It is one process set. Its members are numbered from 0, in the order of the list of
 * world ranks that made it: this number is the *set rank*.
 *
 * Blocking. Every call blocks until this rank's part is done. All members of a set must make the
 * same calls in the same order, with the same count, type, operation and root. An engine does not
 * compare them.
 *
 * Threads. One communicator is used by one thread at a time. Different threads may use different
 * communicators at the same time, and none of them waits for another. Only one thread at a time may
 * open or close a world, or create or destroy its communicators. Other communicators may be in use
 * then. Any thread may call abort() at any time from the return of open() until the call of
 * close().
 *
 * Buffers are the caller's and must be aligned for their type. The engine uses them only during the
 * call. There is one exception, described at abort().
 *
 * Errors. A call returns HVD_OK, or another status and one line of text in `err`:
 * - HVD_ERR_PEER_LOST: another rank has ended, did not answer within the time-out, or abort() was
 *   called. The communicator cannot be used any more, only destroyed. The members that wait for
 *   this rank in that communicator learn of it too. With gloo, a wait to send sometimes does so
 *   only at its time-out, so the loop calls abort() as soon as a control channel closes.
 * - HVD_ERR_ARGUMENT: the call or a setting is wrong, and nothing was sent.
 * - HVD_ERR_UNSUPPORTED: this engine does not have it, and nothing was sent.
 * - HVD_ERR_MEMORY: there is not enough memory, and nothing was sent.
 * - HVD_ERR_ENGINE: the library below failed in another way. The communicator cannot be used.
 * After any error, the contents of the output buffers are undefined.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "include/hvd.h"

/* A module says with this number which version of this file it was built with. */
#define ENGINE_VERSION 5
#define ENGINE_LANES_MAX 2

struct engine_world; /* both are defined by each engine */
struct engine_comm;

/* Where this process is. The local numbers count the ranks of one host. The cross numbers count the
 * hosts that have this local rank. */
struct engine_place {
    int rank, size;
    int local_rank, local_size;
    int cross_rank, cross_size;
};

/* What the launcher says about the job (engine/setup.h reads it from the environment). */
struct engine_setup {
    struct engine_place place; /* size 0: not given. mpi asks MPI instead. */
    const char *address;       /* of the launcher's HTTP store; NULL: none */
    int port;
    const char *host;          /* this host, as the launcher names it; NULL: unknown */
    const char *interface;     /* network interface for gloo; NULL: that of this host's name */
    int64_t timeout_ms;        /* gloo: for a connection, and for each wait for another rank; > 0 */
    bool mpi_threads_disabled; /* mpi: make one call of MPI at a time */
    size_t piece;              /* largest part of one MPI message, in bytes; 0: 1 GiB */
};

struct engine {
    int version; /* ENGINE_VERSION */
    const char *name;
    bool keeps_buffers; /* after a failure, keep the buffers of the call: see abort() */
    /* Of how many communicators of the same ranks the operations should run at the same time. 2: an
     * operation waits at its begin and its end, and the other one uses that time. */
    int lanes;

    /* Waits until all ranks of the job have opened their world, and fills `place`. */
    enum hvd_status (*open)(const struct engine_setup *setup, struct engine_world **world,
                            struct engine_place *place, struct error *err);
    /* Destroy all communicators before. Accepts NULL. It does not wait for other ranks, except that
     * mpi waits in MPI_Finalize if open() initialized MPI and abort() was not called. */
    void (*close)(struct engine_world *world);
    /* Wakes every blocked call of this world. These calls, and all later calls except close() and
     * comm_destroy(), fail with HVD_ERR_PEER_LOST. Does not block. May be called twice.
     *
     * With mpi, a call that was woken leaves its request in MPI, because MPI cannot cancel a
     * collective operation. This engine then makes no MPI call any more, and the program must not
     * make one either. Another rank may still write into the buffers of that call, if the network
     * writes into memory without the help of this process. So keep these buffers until the process
     * ends. open(), comm_create() and most operations of mpi cannot be woken: see mpi/mpi.c. A
     * time-out with mpi has the effect of abort(). */
    void (*abort)(struct engine_world *world);

    /* A new communicator of the `count` different world ranks in `ranks`, which include this rank.
     * All its members call this, and nobody else has to. `id` is the same on all of them, and no
     * other communicator of this world that exists has it. */
    enum hvd_status (*comm_create)(struct engine_world *world, uint64_t id, const int *ranks,
                                   int count, struct engine_comm **comm, struct error *err);
    void (*comm_destroy)(struct engine_comm *comm); /* accepts NULL; waits for no other rank */

    /* In place. It and reducescatter() have the pairs of type and operation that reduce_find() has,
     * on every engine. HVD_ERR_UNSUPPORTED: another one, such as HVD_AVERAGE, for which you use
     * HVD_SUM and divide. For HVD_BOOL, sum and max are "or", product and min are "and". */
    enum hvd_status (*allreduce)(struct engine_comm *comm, void *data, size_t count,
                                 enum hvd_type type, enum hvd_op op, struct error *err);
    /* `out` receives bytes[0] bytes from set rank 0, bytes[1] from set rank 1, and so on, back to
     * back. `in` may be the place in `out` that is this rank's own. */
    enum hvd_status (*allgatherv)(struct engine_comm *comm, const void *in, void *out,
                                  const size_t *bytes, struct error *err);
    enum hvd_status (*broadcast)(struct engine_comm *comm, void *data, size_t bytes, int root,
                                 struct error *err);
    /* Sends send_bytes[i] bytes to set rank i and receives receive_bytes[i] bytes from it. A part
     * of 0 bytes is not a message. Parts are back to back in both buffers, which must not overlap.
     * With mpi, it has this time-out, and 0 means no limit; with gloo, it has that of the world, as
     * all operations have. */
    enum hvd_status (*alltoallv)(struct engine_comm *comm, const void *in, const size_t *send_bytes,
                                 void *out, const size_t *receive_bytes, int64_t timeout_ms,
                                 struct error *err);
    /* `in` has counts[0] + counts[1] + ... elements. `out` receives the reduced part of this rank,
     * counts[set rank] elements. They must not overlap. */
    enum hvd_status (*reducescatter)(struct engine_comm *comm, const void *in, void *out,
                                     const size_t *counts, enum hvd_type type, enum hvd_op op,
                                     struct error *err);

    /* NULL: the engine does not use MPI. The world ranks of the MPI_Comm that `communicator` points
     * to, for the caller to free; none for MPI_COMM_NULL. Waits for no other rank. */
    enum hvd_status (*mpi_members)(struct engine_world *world, const void *communicator,
                                   int32_t **ranks, int32_t *count, struct error *err);
};

/* The engine of a job with one rank. It needs no library and never waits. */
extern const struct engine engine_self;

/* For mem_last_words (base/mem.h) of libhvd and of each module. */
#define ENGINE_LAST_WORDS "libhvd: out of memory; this process ends\n"

/* A module exports this function, under this name. */
const struct engine *hvd_engine_module(void);
#define ENGINE_MODULE_SYMBOL "hvd_engine_module"
