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

/* Waits until the stream of the communicator has come to its end, for at most `limit_ns`. Then runs
 * the operation, and adds the copies of its results to the stream. Within gpu_enter(). */
enum hvd_status gpu_stage_run(struct runner *runner, const struct nccl_comm *comm,
                              const struct part *parts, size_t count, int64_t limit_ns,
                              struct error *err);
