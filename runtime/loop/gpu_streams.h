/* SPDX-License-Identifier: Apache-2.0 */
/* The program's streams that an operation on a GPU depends on. Most programs have one. */
#pragma once

#include "engine/nccl/comm.h"
#include "loop/runner.h"

enum { GPU_STREAMS_MAX = 8 };

/* The last mark of each stream. The marks live as long as their submissions. */
struct gpu_streams {
    const struct gpu_mark *marks[GPU_STREAMS_MAX];
    size_t count;
    bool all; /* there are no others, and each stream is the same in all threads */
};

/* The communicator's stream goes on when the tensors are ready in the program's streams. */
enum hvd_status gpu_streams_wait(struct gpu_streams *streams, const struct nccl_comm *comm,
                                 const struct part *parts, size_t count, struct error *err);

/* The program's streams go on at the mark, which is of the communicator's stream. */
enum hvd_status gpu_streams_hold(const struct gpu_streams *streams, const struct nccl_comm *comm,
                                 const struct gpu_mark *end, struct error *err);
