/* SPDX-License-Identifier: Apache-2.0 */
/* What a fake communicator does in a stream. */
#pragma once

#include "mesh.h"

enum kernel_kind { ALL_REDUCE, REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, TO_ALL };

/* An operation that multiplies its inputs. */
struct scalar {
    bool used;
    double value;
};

struct kernel {
    enum kernel_kind kind;
    const void *in; /* addresses in the other mapping */
    void *out;
    size_t count;
    int type, op, root;
    struct scalar scalar;
    struct mesh_part *parts; /* TO_ALL: owned */
};

/* Runs it with the other ranks. Stopped: the output is undefined. */
void kernel_run(struct mesh *mesh, const struct kernel *kernel);

size_t kernel_type_bytes(int type); /* of an enum nccl_type */
