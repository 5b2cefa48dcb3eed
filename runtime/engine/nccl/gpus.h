/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPUs of this process, as far as the program's tensors are there.
 *
 * libhvd works in the primary context of a GPU, as CUDA's runtime and NCCL do. Programs' threads
 * call these functions when they submit, so the context that is current there stays the same.
 */
#pragma once

#include <pthread.h>

#include "engine/nccl/libraries.h"
#include "include/hvd.h"

struct gpus;

/* One GPU. It lives as long as the struct gpus. */
struct gpu {
    const struct cuda *cuda;
    int number; /* as CUDA counts, with CUDA_VISIBLE_DEVICES */
    int device; /* CUdevice */
    void *context;
    pthread_mutex_t lock; /* guards the rest */
    void **events;        /* that are free: to make one takes longer than to use it */
    size_t count, room;
    uint64_t marks; /* the number of the last one */
};

struct gpus *gpus_create(void);
void gpus_destroy(struct gpus *gpus); /* all marks must be gone; accepts NULL */

/* The number of the GPU that has the memory; -1: host memory, or NULL. */
int gpus_find(struct gpus *gpus, const void *pointer);

/* NULL: CUDA does not give it. */
struct gpu *gpus_get(struct gpus *gpus, int number, struct error *err);

/* Makes the context current in this thread. Call gpu_leave() afterwards. */
int gpu_enter(const struct gpu *gpu, struct error *err);
void gpu_leave(const struct gpu *gpu);

/* A point in a stream: what was submitted to the stream before is complete. One thread at a time
 * holds it and releases it. */
struct gpu_mark {
    struct gpu *gpu;
    void *event, *stream;
    uint64_t number; /* grows with each mark of this GPU */
    size_t holders;
};

/* `stream` is a CUstream of this GPU; NULL: the legacy default stream. NULL is returned if it is
 * not one. */
struct gpu_mark *gpu_mark(struct gpu *gpu, void *stream, struct error *err);
struct gpu_mark *gpu_mark_hold(struct gpu_mark *mark);
void gpu_mark_release(struct gpu_mark *mark); /* accepts NULL */
