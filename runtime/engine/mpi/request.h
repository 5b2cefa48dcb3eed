/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits for requests of MPI.
 *
 * A blocking call of MPI cannot be woken. A request can be tested until it is complete, late, or
 * given up after abort(). Between two tests the wait gives the processor away, except in its first
 * 50 microseconds. A wait for data spins so for a second, as MPI does: data comes soon, because the
 * ranks have agreed before. A wait for a message spins for 0.2 ms. Then it sleeps for longer and
 * longer times, at most 1 ms.
 */
#pragma once

#include "engine/mpi/comm.h"

enum request_kind { REQUEST_DATA, REQUEST_MESSAGE };

/* Before MPI calls: takes the lock of a world without MPI_THREAD_MULTIPLE. */
void request_lock(struct engine_world *world);
void request_unlock(struct engine_world *world);

/* HVD_OK, or the communicator cannot be used: it is broken, or abort() was called. */
enum hvd_status request_may_start(const struct engine_comm *comm, struct error *err);

/* The status for the error code of an MPI call named `what`. Breaks the communicator on failure. */
enum hvd_status request_result(struct engine_comm *comm, int code, const char *what,
                               struct error *err);

/* Waits until all requests are complete. On failure the requests remain in MPI, which would write
 * into their buffers in any later call. So a failure, also a time-out, aborts the world.
 * `timeout_ms` 0: no limit. `what` is the name of the MPI call that began them. */
enum hvd_status request_wait(struct engine_comm *comm, MPI_Request *requests, int count,
                             enum request_kind kind, int64_t timeout_ms, const char *what,
                             struct error *err);
