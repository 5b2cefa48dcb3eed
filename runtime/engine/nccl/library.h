/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of NCCL that libhvd uses, found at run time.
 *
 * The declarations are our own, so the build does not need NCCL. NCCL keeps its ABI within version
 * 2, and the numbers below never change. libhvd needs version 2.13 or later, for ncclGetLastError.
 * Averages and bfloat16 came with 2.10, products with a scalar with 2.11.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

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
