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

#include <stdbool.h>

#include "base/error.h"
#include "engine/nccl/comm.h"
#include "include/hvd.h"

/*
 * How NCCL computes a reduction of hvd.h, without a CUDA kernel of our own.
 *
 * NCCL can average, and can multiply the inputs of a sum by a factor. This is used where the result
 * is what hvd.h promises. Another factor takes a pass of its own over the data. That is an
 * allreduce in a communicator of one rank, which NCCL computes as a product with a scalar.
 *
 * NCCL multiplies in the element type, so the factor is rounded to it. It has no 16-bit integers.
 * A bool is a byte of 0 or 1, whose "or" is the maximum and whose "and" is the minimum. Integers
 * can be averaged, and not be scaled.
 */
struct nccl_reduction {
    int type;      /* enum nccl_type */
    int op;        /* enum nccl_op */
    double before; /* the factor of a pass over the inputs; 1: no pass */
    double factor; /* NCCL_SUM multiplies the inputs by it; 1: a plain sum */
    double after;  /* the factor of a pass over the result; 1: no pass */
};

/* HVD_ERR_UNSUPPORTED: NCCL does not have it. `size` is the number of ranks. */
enum hvd_status nccl_reduction_plan(enum hvd_type type, enum hvd_op op, double prescale,
                                    double postscale, int size, struct nccl_reduction *out,
                                    struct error *err);

/* Writes the factor in the type, of which it is a floating-point one. Returns the bytes. */
size_t nccl_scalar(int type, double factor, void *out);

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
