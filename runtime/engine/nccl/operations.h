/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations of NCCL. Each call adds work to the stream of the communicator and returns. All
 * members make the same calls in the same order, within gpu_enter().
 *
 * Tensors that libhvd has fused are one group of NCCL, which is one kernel. They are not copied, so
 * there is not a fusion buffer.
 *
 * After an error, the communicator can only be destroyed.
 */
#pragma once

#include "engine/nccl/comm.h"
#include "engine/nccl/reduction.h"

/* One tensor of an allreduce. */
struct nccl_tensor {
    const void *in; /* NULL: zeros, and nobody reads the result */
    void *out;
    size_t count; /* elements */
};

enum hvd_status nccl_allreduce(struct nccl_comm *comm, const struct nccl_tensor *tensors,
                               size_t count, size_t type_bytes,
                               const struct nccl_reduction *reduction, struct error *err);
/* `counts` has the elements of each rank's part. `out` may be `in`. */
enum hvd_status nccl_reducescatter(struct nccl_comm *comm, const void *in, void *out,
                                   const size_t *counts, size_t type_bytes,
                                   const struct nccl_reduction *reduction, struct error *err);

/* These move bytes, as in engine/engine.h. */
enum hvd_status nccl_allgatherv(struct nccl_comm *comm, const void *in, void *out,
                                const size_t *bytes, struct error *err);
enum hvd_status nccl_alltoallv(struct nccl_comm *comm, const void *in, const size_t *send_bytes,
                               void *out, const size_t *receive_bytes, struct error *err);
/* `in` is used on the root, `out` on the others, and on the root if it is not NULL. */
enum hvd_status nccl_broadcast(struct nccl_comm *comm, const void *in, void *out, size_t bytes,
                               int root, struct error *err);
