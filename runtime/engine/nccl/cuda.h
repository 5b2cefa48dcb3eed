/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The few functions of CUDA's driver library that libhvd uses, found at run time.
 *
 * The declarations are our own, so the build does not need CUDA. They are part of the driver's ABI,
 * which NVIDIA keeps: a function that changes gets a new name, such as cuMemFree_v2. The newest of
 * them, cuMemAllocAsync, came with CUDA 11.2, so older drivers are refused.
 *
 * A process has memory of a GPU only after somebody has loaded libcuda.so.1. So libhvd never loads
 * it, and a program without GPUs does not pay for it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define CUDA_LIBRARY "libcuda.so.1"

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_STREAM_NON_BLOCKING = 1, /* it does not wait for the legacy default stream */
    CUDA_EVENT_DISABLE_TIMING = 2,
    CUDA_POINTER_MEMORY_TYPE = 2,
    CUDA_POINTER_DEVICE_ORDINAL = 9,
    CUDA_MEMORY_TYPE_DEVICE = 2,
};

/* A handle that means another stream in each thread. */
#define CUDA_STREAM_PER_THREAD ((void *)2)

typedef uint64_t cuda_pointer; /* CUdeviceptr */

/* X(member, symbol, parameters). All return a CUresult. Contexts, streams and events are void *. */
/* clang-format off */
#define CUDA_FUNCTION_LIST(X)                                                                      \
    X(error_text, cuGetErrorString, (int result, const char **text))                               \
    X(device_get, cuDeviceGet, (int *device, int ordinal))                                         \
    X(context_retain, cuDevicePrimaryCtxRetain, (void **context, int device))                      \
    X(context_release, cuDevicePrimaryCtxRelease_v2, (int device))                                 \
    X(context_push, cuCtxPushCurrent_v2, (void *context))                                          \
    X(context_pop, cuCtxPopCurrent_v2, (void **context))                                           \
    X(stream_priorities, cuCtxGetStreamPriorityRange, (int *least, int *greatest))                 \
    X(stream_create, cuStreamCreateWithPriority, (void **stream, unsigned flags, int priority))    \
    X(stream_destroy, cuStreamDestroy_v2, (void *stream))                                          \
    X(stream_wait, cuStreamWaitEvent, (void *stream, void *event, unsigned flags))                 \
    X(stream_call, cuLaunchHostFunc, (void *stream, void (*function)(void *), void *argument))     \
    X(event_create, cuEventCreate, (void **event, unsigned flags))                                 \
    X(event_destroy, cuEventDestroy_v2, (void *event))                                             \
    X(event_record, cuEventRecord, (void *event, void *stream))                                    \
    X(event_query, cuEventQuery, (void *event))                                                    \
    X(pointer_attributes, cuPointerGetAttributes,                                                  \
      (unsigned count, const int *attributes, void **data, cuda_pointer pointer))                  \
    X(memory_take, cuMemAllocAsync, (cuda_pointer *pointer, size_t bytes, void *stream))           \
    X(memory_give, cuMemFreeAsync, (cuda_pointer pointer, void *stream))                           \
    X(memory_free, cuMemFree_v2, (cuda_pointer pointer))                                           \
    X(copy, cuMemcpyDtoDAsync_v2, (cuda_pointer to, cuda_pointer from, size_t bytes, void *stream)) \
    X(copy_to_host, cuMemcpyDtoHAsync_v2, (void *to, cuda_pointer from, size_t bytes, void *stream)) \
    X(copy_to_device, cuMemcpyHtoDAsync_v2,                                                        \
      (cuda_pointer to, const void *from, size_t bytes, void *stream))                             \
    X(set_bytes, cuMemsetD8Async, (cuda_pointer to, unsigned char byte, size_t bytes, void *stream))
/* clang-format on */

struct cuda {
    void *library;
#define CUDA_MEMBER(member, symbol, parameters) int(*member) parameters;
    CUDA_FUNCTION_LIST(CUDA_MEMBER)
#undef CUDA_MEMBER
};

/* 1: found. 0: this process has not loaded the library. -1: the library is too old. */
int cuda_find(struct cuda *cuda, struct error *err);
void cuda_forget(struct cuda *cuda); /* accepts an all-zero struct */

/* The GPU that has the memory; -1: it is host memory, or CUDA does not know it. */
int cuda_device_of(const struct cuda *cuda, const void *pointer);

/* 0, or -1 and "WHAT: text of the result". */
int cuda_check(const struct cuda *cuda, int result, const char *what, struct error *err);

/* Frees `data` if it is memory of a GPU. False: it is not. */
bool cuda_free_if_device(void *data);

/* If `data` is memory of a GPU, copies it to `to` and then frees it, in the order of the stream. 0:
 * it is not. -1: CUDA failed, and nothing is freed. */
int cuda_move_if_device(void *data, void *to, size_t bytes, void *stream, struct error *err);

static inline cuda_pointer cuda_address(const void *pointer)
{
    return (cuda_pointer)(uintptr_t)pointer;
}
