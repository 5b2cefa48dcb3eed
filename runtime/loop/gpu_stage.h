/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations on GPUs that NCCL does not have: they are copied to host memory, where the engine of
 * the set does them, and copied back. So the results are those of tensors in host memory.
 *
 * That is Adasum. It needs dot products, and libhvd has no kernels of its own for a GPU.
 */
#pragma once

#include "engine/nccl/comm.h"
#include "loop/runner.h"

bool gpu_stage_has(const struct request *request); /* whether the request is such an operation */

/* Runs the operation, and adds the copies of its results to the stream of the communicator. The
 * stream must have come to its end, because a copy to host memory waits for it without a limit.
 * Within gpu_enter(). */
enum hvd_status gpu_stage_run(struct runner *runner, const struct nccl_comm *comm,
                              const struct part *parts, size_t count, struct error *err);
