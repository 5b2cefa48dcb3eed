/* SPDX-License-Identifier: Apache-2.0 */
/* What a program has submitted, and what comes back: see handles.h. */
#pragma once

#include <stdbool.h>

#include "engine/nccl/gpus.h"
#include "include/hvd.h"

struct handle;

/* One tensor of a handle. The pointers to memory are the program's, but for `splits`. */
struct submission {
    struct handle *handle;
    size_t index;
    int32_t set;
    const void *input;
    void *output;
    int64_t *splits;        /* alltoall: rows for each set rank, owned; NULL: equal parts */
    struct gpu_mark *ready; /* on a GPU: when the input is complete, owned; NULL: it is */
    bool launched;          /* see submission_launched(); under the lock */
};

/* What a submission gives back besides its buffers. `data` and `splits` go to the submission. */
struct outcome {
    enum hvd_status status;
    const char *text; /* borrowed */
    void *data;
    int64_t rows;
    int64_t *splits;
    int32_t split_count;
    int32_t number; /* join: the last rank; add_process_set: the number of the set */
};

#define OUTCOME_INIT             \
    {                            \
        .text = "", .number = -1 \
    }
