/* SPDX-License-Identifier: Apache-2.0 */
/* Where the tensors of a test are: in host memory, or on the GPU with the number of the local rank.
 * With `gpu`, the program loads libcuda.so.1, which may be the one of tests/gpu/fake. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct place {
    int device;    /* -1: host memory */
    void *context; /* for cuCtxPushCurrent */
    struct place_cuda *cuda;
};

void place_open(struct place *place, bool gpu, int local_rank);
void place_close(struct place *place);
/* Each thread that uses the rest begins with it. */
void place_enter(const struct place *place);

void *place_new(const struct place *place, size_t bytes); /* NULL without bytes */
void place_free(const struct place *place, void *memory);
void place_put(const struct place *place, void *to, const void *from, size_t bytes);
void place_get(const struct place *place, void *to, const void *from, size_t bytes);

/* Only on a GPU. */
void *place_stream(const struct place *place);
void place_stream_end(const struct place *place, void *stream);
void place_sync(const struct place *place, void *stream); /* waits until it is at its end */
/* Work of a stream: sleeps, and copies on the device. */
void place_delay(const struct place *place, void *stream);
void place_copy(const struct place *place, void *stream, void *to, const void *from, size_t bytes);

/* Allocations that exist, if the GPU is a fake one; -1: it is real. */
long place_allocations(const struct place *place);
