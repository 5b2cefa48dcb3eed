/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The few functions of CUDA's driver library and of NCCL that libhvd uses, found at run time.
 *
 * The declarations are our own, so the build needs neither.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 * CUDA. The declarations are part of the driver's ABI, which NVIDIA keeps: a function that changes
 * gets a new name, such as cuMemFree_v2. The newest of them, cuMemAllocAsync, came with CUDA 11.2,
 * so older drivers are refused.
 *
 * A process has memory of a GPU only after somebody has loaded libcuda.so.1. So libhvd never loads
 * it, and a program without GPUs does not pay for it.
 */
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

/*
 * NCCL. It keeps its ABI within version 2, and the numbers below never change. libhvd needs version
 * 2.13 or later, for ncclGetLastError. Averages and bfloat16 came with 2.10, products with a scalar
 * with 2.11.
 */
#define NCCL_LIBRARY "libnccl.so.2"

enum {
    NCCL_VERSION_NEEDED = 21300,
    NCCL_ID_BYTES = 128,
    NCCL_SCALAR_ON_HOST = 1,
};

enum nccl_result { NCCL_SUCCESS = 0, NCCL_REMOTE_ERROR = 6 };

enum nccl_type {
    NCCL_INT8,
    NCCL_UINT8,
    NCCL_INT32,
    NCCL_UINT32,
    NCCL_INT64,
    NCCL_UINT64,
    NCCL_FLOAT16,
    NCCL_FLOAT32,
    NCCL_FLOAT64,
    NCCL_BFLOAT16
};

enum nccl_op { NCCL_SUM, NCCL_PRODUCT, NCCL_MAX, NCCL_MIN, NCCL_AVERAGE };

struct nccl_id { /* it is passed by value */
    char bytes[NCCL_ID_BYTES];
};

/* X(member, symbol, parameters). All return a ncclResult_t. Communicators and streams are void *,
 * types and operations int. */
/* clang-format off */
#define NCCL_FUNCTION_LIST(X)                                                                      \
    X(get_version, ncclGetVersion, (int *version))                                                 \
    X(get_id, ncclGetUniqueId, (struct nccl_id *id))                                               \
    X(create, ncclCommInitRank, (void **comm, int size, struct nccl_id id, int rank))              \
    X(state, ncclCommGetAsyncError, (void *comm, int *result))                                     \
    X(abort, ncclCommAbort, (void *comm))                                                          \
    X(group_start, ncclGroupStart, (void))                                                         \
    X(group_end, ncclGroupEnd, (void))                                                             \
    X(op_create, ncclRedOpCreatePreMulSum,                                                         \
      (int *op, void *scalar, int type, int residence, void *comm))                                \
    X(op_destroy, ncclRedOpDestroy, (int op, void *comm))                                          \
    X(allreduce, ncclAllReduce,                                                                    \
      (const void *in, void *out, size_t count, int type, int op, void *comm, void *stream))       \
    X(reduce, ncclReduce,                                                                          \
      (const void *in, void *out, size_t count, int type, int op, int root, void *comm, void *stream)) \
    X(reducescatter, ncclReduceScatter,                                                            \
      (const void *in, void *out, size_t count, int type, int op, void *comm, void *stream))       \
    X(allgather, ncclAllGather,                                                                    \
      (const void *in, void *out, size_t count, int type, void *comm, void *stream))               \
    X(broadcast, ncclBroadcast,                                                                    \
      (const void *in, void *out, size_t count, int type, int root, void *comm, void *stream))     \
    X(send, ncclSend, (const void *in, size_t count, int type, int to, void *comm, void *stream))  \
    X(receive, ncclRecv, (void *out, size_t count, int type, int from, void *comm, void *stream))
/* clang-format on */

struct nccl {
    void *library;
    int version; /* such as 22809 for 2.28.9 */
#define NCCL_MEMBER(member, symbol, parameters) int(*member) parameters;
    NCCL_FUNCTION_LIST(NCCL_MEMBER)
#undef NCCL_MEMBER
    const char *(*error_text)(int result);
    const char *(*last_error)(void *comm);
};

/* Loads the library, or uses the one that the process has loaded. -1: it is not there, or too old;
 * the error says so. */
int nccl_load(struct nccl *nccl, struct error *err);
void nccl_unload(struct nccl *nccl); /* accepts an all-zero struct */

/* The version of the library; 0: nccl_load() would fail. */
int nccl_version(void);

/* 0: success. Otherwise -1 and "WHAT: text". `comm` may be NULL. */
int nccl_check(const struct nccl *nccl, int result, void *comm, const char *what,
               struct error *err);
