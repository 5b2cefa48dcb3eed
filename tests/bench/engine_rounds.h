/* SPDX-License-Identifier: Apache-2.0 */
/* An allreduce of fp32 on a bare library and through libhvd's engine, in turns. Rank 0 prints one
 * line for each round: "BYTES BARE ENGINE", the last two in microseconds. */
#pragma once

#include "worker.h"

typedef void bare_allreduce(void *context, float *data, size_t count);

/* The sizes are in `sizes`, in bytes, and end with 0. */
void engine_rounds(const struct worker *worker, struct engine_comm *comm, bare_allreduce *bare,
                   void *context, const size_t *sizes, int rounds);
