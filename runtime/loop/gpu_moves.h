/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the operations of hvd.h on tensors in the memory of a GPU, with NCCL. The parts are of one
 * kind, as in loop/runner.h. */
#pragma once

#include "engine/nccl/comm.h"
#include "engine/nccl/operations.h"
#include "loop/runner.h"

/* Launches the operation in the stream of the communicator, within gpu_enter(). The outcomes get
 * their rows, and data in the memory of the GPU. After a failure they have no data. */
enum hvd_status gpu_moves_launch(struct runner *runner, struct nccl_comm *comm,
                                 const struct part *parts, size_t count, struct outcome *outcomes,
                                 struct error *err);

/* Frees the data and splits of outcomes that nobody gets. */
void gpu_moves_drop(struct nccl_comm *comm, struct outcome *outcomes, size_t count);

/* The name of the activity in a timeline, such as "NCCL_ALLREDUCE". Static. */
const char *gpu_moves_activity(const struct request *request);

/*
 * Operations on GPUs that NCCL does not have: they are copied to host memory, where the engine of
 * the set does them, and copied back. So the results are those of tensors in host memory.
 *
 * That is Adasum. It needs dot products, and libhvd has no kernels of its own for a GPU.
 */

bool gpu_stage_has(const struct request *request); /* whether the request is such an operation */

/* Waits until the stream of the communicator has come to its end, for at most `limit_ns`. Then runs
 * the operation, and adds the copies of its results to the stream. Within gpu_enter(). */
enum hvd_status gpu_stage_run(struct runner *runner, const struct nccl_comm *comm,
                              const struct part *parts, size_t count, int64_t limit_ns,
                              struct error *err);
