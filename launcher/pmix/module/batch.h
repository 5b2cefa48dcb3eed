/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for PMIx's thread, but not for ever.
 *
 * Registering is a matter of microseconds, and simplest when it is waited for. But libpmix's thread
 * can lock up for good (4.2: when a worker was killed in the middle of connecting), and an agent
 * that waits for it would hang with the job still to be torn down. So the wait has an end; after it
 * the library is given up (struct server, `stuck`), and the batch is left to whoever still holds
 * it.
 */
#pragma once

#include <pmix_server.h>

struct batch;

struct batch *batch_create(int count); /* of operations, each of which calls batch_done() once */
void batch_done(pmix_status_t status, void *batch); /* a pmix_op_cbfunc_t */

/* The first failure, PMIX_SUCCESS, or PMIX_ERR_TIMEOUT after 5 s; the batch is gone. */
pmix_status_t batch_wait(struct batch *batch);
