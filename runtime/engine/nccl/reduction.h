/* SPDX-License-Identifier: Apache-2.0 */
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
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "include/hvd.h"

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
