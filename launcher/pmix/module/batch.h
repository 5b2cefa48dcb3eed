/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A wait for PMIx's thread, with a time limit.
 *
 * Registering takes microseconds, and it is simplest to wait for it. But libpmix's thread can lock
 * up for good (4.2: when a worker is killed while it connects). An agent that waits for it would
 * hang and could not end the job. So the wait has a limit. After it we give the library up (struct
 * server, `stuck`); the batch is freed by its last user.
 */
#pragma once

#include <pmix_server.h>

struct batch;

struct batch *batch_create(int count); /* of operations, each of which calls batch_done() once */
void batch_done(pmix_status_t status, void *batch); /* a pmix_op_cbfunc_t */

/* The first failure, PMIX_SUCCESS, or PMIX_ERR_TIMEOUT after 5 s; the batch is gone. */
pmix_status_t batch_wait(struct batch *batch);
