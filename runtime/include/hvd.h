/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libhvd: collective operations for the workers of a distributed job, after the model of Horovod.
 *
 * Ranks submit named tensors in any order. The library matches them by name, fuses small ones, and
 * runs each operation when all ranks of the process set have submitted it.
 *
 * Results: unless its comment says otherwise, a function returns HVD_OK (0) or an HVD_ERR_ code,
 * which is negative. hvd_error_text() explains the last failure in the calling thread.
 *
 * Threads: you may call every function from any thread, also at the same time. Only the callback of
 * a submission has limits: see hvd_callback. A forked child must not use the library: there, every
 * function reports HVD_ERR_NOT_INITIALIZED.
 *
 * Memory: if there is not enough for a tensor or a thread, a function returns HVD_ERR_MEMORY. If
 * there is none for one of the library's own small blocks, it ends the process with status 125. The
 * line before says so, on stderr. The other ranks get HVD_ERR_PEER_LOST.
 *
 * Ownership: the library copies names, shapes, splits and lists of ranks before a call returns. It
 * borrows the tensors' memory until the handle is complete.
 *
 * ABI: values of enums never change. Structs that may grow begin with their own size, which the
 * INIT macros fill in. A member that your size does not reach has its default.
 *
 * Build: compile and link a program with the flags that `pkg-config --cflags --libs hvd` prints.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HVD_API __attribute__((visibility("default")))

/* Limits. */
#define HVD_NAME_MAX 1023 /* bytes of a tensor's name, without the NUL */
#define HVD_DIMS_MAX 32   /* dimensions of a shape */

/* X(name, value, bytes of an element, text). Values 0 to 9 are those of Horovod. */
/* clang-format off */
#define HVD_TYPE_LIST(X)              \
    X(HVD_UINT8, 0, 1, "uint8")       \
    X(HVD_INT8, 1, 1, "int8")         \
    X(HVD_UINT16, 2, 2, "uint16")     \
    X(HVD_INT16, 3, 2, "int16")       \
    X(HVD_INT32, 4, 4, "int32")       \
    X(HVD_INT64, 5, 8, "int64")       \
    X(HVD_FLOAT16, 6, 2, "float16")   \
    X(HVD_FLOAT32, 7, 4, "float32")   \
    X(HVD_FLOAT64, 8, 8, "float64")   \
    X(HVD_BOOL, 9, 1, "bool")         \
    X(HVD_BFLOAT16, 10, 2, "bfloat16") \
    X(HVD_UINT32, 11, 4, "uint32")    \
    X(HVD_UINT64, 12, 8, "uint64")

/* X(name, value, text): how allreduce and reducescatter combine elements. Values are those of
 * Horovod. For HVD_BOOL, sum and max mean "or", product and min mean "and". */
#define HVD_OP_LIST(X)             \
    X(HVD_AVERAGE, 0, "average")   \
    X(HVD_SUM, 1, "sum")           \
    X(HVD_ADASUM, 2, "adasum")     \
    X(HVD_MIN, 3, "min")           \
    X(HVD_MAX, 4, "max")           \
    X(HVD_PRODUCT, 5, "product")

/* X(name, value, text). */
#define HVD_STATUS_LIST(X)                                                                       \
    X(HVD_OK, 0, "success")                                                                      \
    X(HVD_IN_PROGRESS, 1, "the operation is not complete")                                       \
    X(HVD_ERR_NOT_INITIALIZED, -1, "the library is not initialized")                             \
    X(HVD_ERR_ARGUMENT, -2, "an argument is not valid")                                          \
    X(HVD_ERR_DUPLICATE_NAME, -3, "this rank has already submitted a tensor of this name")       \
    X(HVD_ERR_UNKNOWN_SET, -4, "there is not a process set with this number")                    \
    X(HVD_ERR_NOT_MEMBER, -5, "this rank is not a member of the process set")                    \
    X(HVD_ERR_SET_EXISTS, -6, "a process set with these ranks exists")                           \
    X(HVD_ERR_UNKNOWN_HANDLE, -7, "there is not a handle with this number")                      \
    X(HVD_ERR_MISMATCH, -8, "the ranks submitted different tensors under one name")              \
    X(HVD_ERR_SHUT_DOWN, -9, "the library was shut down")                                        \
    X(HVD_ERR_PEER_LOST, -10, "another rank was lost")                                           \
    X(HVD_ERR_TIMEOUT, -11, "the time limit is over")                                            \
    X(HVD_ERR_UNSUPPORTED, -12, "this build or this engine does not support the operation")      \
    X(HVD_ERR_MEMORY, -13, "there is not enough memory")                                         \
    X(HVD_ERR_ENGINE, -14, "the engine reported an error")                                       \
    X(HVD_ERR_BUSY, -15, "another rank or thread uses it")                                       \
    X(HVD_ERR_HOSTS_CHANGED, -16, "hosts have joined or left the job")                           \
    X(HVD_ERR_REMOVED, -17, "the launcher has removed this rank from the job")
/* clang-format on */

#define HVD_TYPE_ENUM(name, value, bytes, text) name = value,
enum hvd_type { HVD_TYPE_LIST(HVD_TYPE_ENUM) };
#undef HVD_TYPE_ENUM

#define HVD_VALUE_ENUM(name, value, text) name = value,
enum hvd_op { HVD_OP_LIST(HVD_VALUE_ENUM) };
enum hvd_status { HVD_STATUS_LIST(HVD_VALUE_ENUM) };
#undef HVD_VALUE_ENUM

/* ---- Errors and types ------------------------------------------------------------------------ */

/* What the last failed call of this thread reported: one line with the cause. Never NULL. Borrowed
 * until this thread calls the library again. */
HVD_API const char *hvd_error_text(void);

/* The general text of an hvd_status. Never NULL; static. */
HVD_API const char *hvd_status_text(int status);

/* Bytes of one element; 0 if `type` is not an hvd_type. */
HVD_API size_t hvd_type_bytes(int type);

/* The name of a type, such as "float32"; NULL if `type` is not an hvd_type. Static. */
HVD_API const char *hvd_type_name(int type);

/* ---- Start and end --------------------------------------------------------------------------- */

/* A process set that exists from the start. */
struct hvd_ranks {
    const int32_t *ranks; /* global ranks, each at most once, in any order */
    int32_t count;
};

/* What a program tells hvd_init(). */
struct hvd_init_options {
    size_t size;                  /* sizeof(struct hvd_init_options) */
    const struct hvd_ranks *sets; /* static process sets; they get the numbers 1, 2, ... */
    int32_t set_count;
};

#define HVD_INIT_OPTIONS_INIT                                           \
    {                                                                   \
        sizeof(struct hvd_init_options), (const struct hvd_ranks *)0, 0 \
    }

/* Connects to the other ranks, and starts the library's threads. The launcher's environment says
 * how; without one, the job has one rank. Collective over all ranks of the job: each must pass the
 * same sets in the same order. `options` may be NULL. A second call while the library is up does
 * nothing and returns HVD_OK. You may call it again after hvd_shutdown(), if the engine allows. */
HVD_API int hvd_init(const struct hvd_init_options *options);

/* Ends the library. Handles that are pending, here and on other ranks, fail with HVD_ERR_SHUT_DOWN.
 * Waits until the library's threads have ended. Handles of before become unknown. Without
 * hvd_init() it does nothing and returns HVD_OK. Do not call it in a callback. */
HVD_API int hvd_shutdown(void);

/* Whether the library is up: from hvd_init() to hvd_shutdown() in this process, even if another
 * rank has shut the job down. */
HVD_API bool hvd_is_initialized(void);

/* ---- Places ---------------------------------------------------------------------------------- */

/* The place of this rank, as numbers from 0, and counts: in the job, on this host, and among the
 * hosts for this local rank. -1: the library is not initialized. */
HVD_API int hvd_rank(void);
HVD_API int hvd_size(void);
HVD_API int hvd_local_rank(void);
HVD_API int hvd_local_size(void);
HVD_API int hvd_cross_rank(void);
HVD_API int hvd_cross_size(void);

/* Why every operation fails from now on: a rank was lost, or an engine failed. HVD_OK: none does.
 * It asks no other rank. Call it before you keep what a GPU has computed: with
 * HOROVOD_ENABLE_ASYNC_COMPLETION=1, wait for your stream first. */
HVD_API int hvd_failure(void);

/* Whether all hosts have the same number of ranks; false: not, or not initialized. */
HVD_API bool hvd_is_homogeneous(void);

/* ---- What was built in ------------------------------------------------------------------------
 */

/* Whether this library contains the engine: "self", "mpi", "gloo" or "nccl". Needs no hvd_init().
 */
HVD_API bool hvd_engine_built(const char *engine);

/* The version of NCCL that this process finds, as NCCL_VERSION_CODE: 22809 is 2.28.9. 0: none that
 * libhvd can use. hvd_engine_built("nccl") says the same. Needs no hvd_init(). */
HVD_API int hvd_nccl_version(void);

/* The engine that this job uses; "" if the library is not initialized. Static. */
HVD_API const char *hvd_engine(void);

/* ---- Tensors and handles ----------------------------------------------------------------------
 */

/*
 * A dense tensor in row-major order. Memory must be aligned for the element type.
 *
 * Memory of a GPU is recognized, and goes to NCCL. Each rank uses one GPU for each process set. You
 * may submit before the GPU has computed the input. The library waits in a stream of its own, and
 * not in your thread. When the handle is complete, so is the GPU's work for it. The
 * data of hvd_result is in the memory of the GPU, too. NCCL multiplies with scales in the element
 * type. HVD_ERR_UNSUPPORTED: NCCL cannot reduce int16 and uint16, and cannot scale integers. A bool
 * must be 0 or 1.
 */
struct hvd_tensor {
    size_t size;          /* sizeof(struct hvd_tensor) */
    const char *name;     /* 1 to HVD_NAME_MAX bytes; the same on all ranks */
    const int64_t *shape; /* `dims` lengths, each >= 0; NULL if dims is 0 */
    int32_t dims;         /* 0 (a scalar) to HVD_DIMS_MAX */
    int32_t type;         /* enum hvd_type */
    const void *input;    /* may be NULL if the tensor has no elements */
    void *output;         /* which functions use it: see there; may equal `input` (in place) */
    void *stream;         /* GPU: the CUstream or cudaStream_t in which the program computes `input`
                             and uses `output` before; NULL: CUDA's default stream */
    int32_t device;       /* the number of a GPU, as CUDA counts; HVD_DEVICE_OF_MEMORY: that of the
                             memory. Only a tensor on a GPU without elements needs the number. */
};

#define HVD_DEVICE_OF_MEMORY (-1)

#define HVD_TENSOR_INIT                                                                 \
    {                                                                                   \
        sizeof(struct hvd_tensor), (const char *)0, (const int64_t *)0, 0, HVD_FLOAT32, \
            (const void *)0, (void *)0, (void *)0, HVD_DEVICE_OF_MEMORY                 \
    }

/* Names an operation in flight. 0 is never a handle. */
typedef int64_t hvd_handle;

/* The library calls it once, in a thread of its own, when the operation is complete. Then `status`
 * is final. It must return soon. It may submit operations, but must not wait for one, and must not
 * call hvd_shutdown(), hvd_add_process_set() or hvd_remove_process_set(). */
typedef void (*hvd_callback)(void *context, hvd_handle handle, int status);

/* How an operation runs. */
struct hvd_options {
    size_t size;           /* sizeof(struct hvd_options) */
    int32_t set;           /* process set; 0: all ranks */
    int32_t op;            /* enum hvd_op; allreduce and reducescatter use it */
    double prescale;       /* allreduce and reducescatter multiply each input by it */
    double postscale;      /* and each result by this */
    hvd_callback callback; /* NULL: none */
    void *context;         /* for `callback` */
    int32_t priority;      /* of what is ready together, the highest runs first; 0: as others */
};

#define HVD_OPTIONS_INIT                                                                    \
    {                                                                                       \
        sizeof(struct hvd_options), 0, HVD_AVERAGE, 1.0, 1.0, (hvd_callback)0, (void *)0, 0 \
    }

/* What an operation returns besides the caller's own buffers. */
struct hvd_result {
    size_t size;         /* sizeof(struct hvd_result) */
    void *data;          /* allgather, alltoall: the output, owned by you; NULL: no elements */
    int64_t rows;        /* allgather, alltoall: first dimension of `data` */
    int64_t *splits;     /* allgather, alltoall: rows from each rank of the set, owned by you */
    int32_t split_count; /* the size of the set */
    int32_t last_joined; /* join: the global rank that joined last */
};

#define HVD_RESULT_INIT                                              \
    {                                                                \
        sizeof(struct hvd_result), (void *)0, 0, (int64_t *)0, 0, -1 \
    }

/* Frees `data` and `splits`, and sets them to NULL. NULL is accepted. */
HVD_API void hvd_result_free(struct hvd_result *result);

/* Copies `data`, which has `bytes` bytes, to `to`, and then frees the result. For memory of a GPU,
 * `to` is on the same GPU. Then both happen in `stream`, after its present work, and the call does
 * not wait. For host memory, `stream` is not used. HVD_ERR_ARGUMENT: a pointer is NULL.
 * HVD_ERR_ENGINE: CUDA failed. The result stays as it is after an error. */
HVD_API int hvd_result_move(struct hvd_result *result, void *to, size_t bytes, void *stream);

/* Whether the operation is complete. HVD_OK: complete and successful. HVD_IN_PROGRESS: not
 * complete. Otherwise the error of the operation, or HVD_ERR_UNKNOWN_HANDLE. Does not release the
 * handle. */
HVD_API int hvd_poll(hvd_handle handle);

/* Waits until the operation is complete, at most `timeout_ms` milliseconds (negative: no limit).
 * HVD_ERR_TIMEOUT leaves the handle as it is. Every other return releases the handle: then it is
 * unknown. `result` may be NULL; otherwise it receives what the operation returned, on success.
 * Only one thread may wait for a handle: another gets HVD_ERR_BUSY. */
HVD_API int hvd_wait(hvd_handle handle, int64_t timeout_ms, struct hvd_result *result);

/* The same for a handle with several tensors: `results` has `count` elements, for the first `count`
 * tensors in their order. */
HVD_API int hvd_wait_grouped(hvd_handle handle, int64_t timeout_ms, struct hvd_result *results,
                             size_t count);

/* ---- Collectives -------------------------------------------------------------------------------
 */

/*
 * Rules for all operations:
 * - All ranks of the process set must submit the operation under the same name. A rank that is not
 *   a member gets HVD_ERR_NOT_MEMBER.
 * - `options` may be NULL for the defaults of HVD_OPTIONS_INIT.
 * - `handle` receives the handle, which you must release with hvd_wait(). It may be NULL if
 *   `options` has a callback: then the library releases the handle after the callback.
 * - What only this rank can get wrong fails at once, with HVD_ERR_ARGUMENT, HVD_ERR_DUPLICATE_NAME,
 *   HVD_ERR_UNKNOWN_SET, HVD_ERR_NOT_MEMBER, HVD_ERR_UNSUPPORTED, HVD_ERR_SHUT_DOWN or
 *   HVD_ERR_PEER_LOST.
 * - All ranks should give the same priority. If they differ, the highest counts.
 * - If ranks differ in type, operation, shape, op, scale, root or kind of memory, the handles of
 *   all ranks fail with HVD_ERR_MISMATCH. The text names the tensor, the ranks and both values. The
 *   library stays usable.
 * - If a rank is lost, all handles that are pending fail with HVD_ERR_PEER_LOST. So do later calls.
 * - The forms without `_async` submit, wait without a limit, and release the handle.
 */

/* Combines `input` of all ranks element by element into `output`, which has the same shape.
 * HVD_AVERAGE divides the sum by the size of the set. Scales multiply in the element type for
 * float32 and float64, and in float32 for float16 and bfloat16. They multiply in float64 for
 * integers, and then truncate toward zero. HVD_BOOL allows no average and no scale.
 *
 * HVD_ADASUM is for floating-point types. It combines whole vectors instead of elements: those of
 * set ranks r and r ^ 1, then the results of r and r ^ 2, and so on. Two vectors a and b give
 * (1 - a.b / (2 a.a)) a + (1 - a.b / (2 b.b)) b. So it adds orthogonal vectors, and averages equal
 * ones. If the size of the set is not a power of two, let p be the next lower one. Then each set
 * rank r >= p is combined with r - p first. Tensors on a GPU are copied to host memory for it, and
 * back. */
HVD_API int hvd_allreduce_async(const struct hvd_tensor *tensor, const struct hvd_options *options,
                                hvd_handle *handle);
HVD_API int hvd_allreduce(const struct hvd_tensor *tensor, const struct hvd_options *options);

/* The same for `count` tensors with different names, submitted at once, with one handle. The handle
 * is complete when all are, and reports the first error in their order. */
HVD_API int hvd_grouped_allreduce_async(const struct hvd_tensor *tensors, size_t count,
                                        const struct hvd_options *options, hvd_handle *handle);
HVD_API int hvd_grouped_allreduce(const struct hvd_tensor *tensors, size_t count,
                                  const struct hvd_options *options);

/* Concatenates `input` of all ranks along the first dimension, in the order of set ranks. First
 * dimensions may differ, also be 0; the others must be equal. Scalars are not allowed. The result
 * has the output; `output` of the tensor is not used. */
HVD_API int hvd_allgather_async(const struct hvd_tensor *tensor, const struct hvd_options *options,
                                hvd_handle *handle);
HVD_API int hvd_allgather(const struct hvd_tensor *tensor, const struct hvd_options *options,
                          struct hvd_result *result);

/* The same for `count` tensors with different names, submitted at once, with one handle. `results`
 * has `count` elements; hvd_wait_grouped() fills them for the asynchronous form. */
HVD_API int hvd_grouped_allgather_async(const struct hvd_tensor *tensors, size_t count,
                                        const struct hvd_options *options, hvd_handle *handle);
HVD_API int hvd_grouped_allgather(const struct hvd_tensor *tensors, size_t count,
                                  const struct hvd_options *options, struct hvd_result *results);

/* Copies `input` of the global rank `root` to `output` of all ranks of the set. Other ranks' input
 * is not used. On the root, `output` may be NULL. */
HVD_API int hvd_broadcast_async(const struct hvd_tensor *tensor, int root,
                                const struct hvd_options *options, hvd_handle *handle);
HVD_API int hvd_broadcast(const struct hvd_tensor *tensor, int root,
                          const struct hvd_options *options);

/* Sends `splits[i]` rows of `input` to set rank i. `splits` has one entry >= 0 for each rank of the
 * set. Their sum is at most the first dimension; rows after that are not sent. NULL: equal parts,
 * and the first dimension must be a multiple of the set's size. Scalars are not allowed. The result
 * has the output and the rows from each rank; `output` of the tensor is not used. */
HVD_API int hvd_alltoall_async(const struct hvd_tensor *tensor, const int64_t *splits,
                               const struct hvd_options *options, hvd_handle *handle);
HVD_API int hvd_alltoall(const struct hvd_tensor *tensor, const int64_t *splits,
                         const struct hvd_options *options, struct hvd_result *result);

/* Combines like allreduce, and gives each rank its part of the rows in `output`. Op: HVD_SUM or
 * HVD_AVERAGE. Of `rows` in the first dimension, each of n ranks gets rows / n, and the first
 * rows % n ranks get one more. Scalars are not allowed. */
HVD_API int hvd_reducescatter_async(const struct hvd_tensor *tensor,
                                    const struct hvd_options *options, hvd_handle *handle);
HVD_API int hvd_reducescatter(const struct hvd_tensor *tensor, const struct hvd_options *options);

/* The same for `count` tensors with different names, submitted at once, with one handle. */
HVD_API int hvd_grouped_reducescatter_async(const struct hvd_tensor *tensors, size_t count,
                                            const struct hvd_options *options, hvd_handle *handle);
HVD_API int hvd_grouped_reducescatter(const struct hvd_tensor *tensors, size_t count,
                                      const struct hvd_options *options);

/* Complete when all ranks of the set have submitted it. A set has one barrier at a time: another
 * gets HVD_ERR_DUPLICATE_NAME. `options` gives the set and the callback. */
HVD_API int hvd_barrier_async(const struct hvd_options *options, hvd_handle *handle);
HVD_API int hvd_barrier(const struct hvd_options *options);

/* This rank has no more tensors for the set. Until all ranks have joined, it takes part with zeros
 * in the allreduces of the others. Their other operations, but for barriers, then fail with
 * HVD_ERR_MISMATCH. This rank must not submit to the set before the handle is complete. The result
 * has `last_joined`, which is the same on all ranks. */
HVD_API int hvd_join_async(const struct hvd_options *options, hvd_handle *handle);
HVD_API int hvd_join(const struct hvd_options *options, int *last_joined);

/* Says which GPU has this rank's zeros for the set, as CUDA counts. Only a rank that joins before
 * it has submitted a tensor on a GPU needs it. Returns the GPU that the rank uses for the set,
 * which is another one if it has submitted a tensor before. HVD_ERR_... (negative) on failure. */
HVD_API int hvd_use_gpu(int32_t set, int32_t device);

/* ---- Process sets ------------------------------------------------------------------------------
 */

/* The set 0 has all ranks. Operations of different sets proceed at the same time. */

/* Adds a set of global ranks, in any order, each at most once. Every rank of the job must call it
 * with the same ranks, and all wait until all have. `*set` receives its number, the same on all
 * ranks. HVD_ERR_SET_EXISTS: a set has these ranks already, and `*set` is its number.
 * HVD_ERR_MISMATCH: the ranks of the job passed different lists. */
HVD_API int hvd_add_process_set(const int32_t *ranks, int32_t count, int32_t *set);

/* Adds a set for each communicator of MPI that a rank passes, such as one of MPI_Comm_split().
 * `communicator` points to this rank's MPI_Comm; MPI_COMM_NULL: it has none. Every rank of the job
 * must call it, and all wait until all have. `*set` receives the number of the own set, or -1. The
 * communicator is only read. HVD_ERR_SET_EXISTS: the own set existed before. HVD_ERR_MISMATCH: the
 * members of a communicator passed different ones. HVD_ERR_UNSUPPORTED: the job does not use the
 * engine mpi. */
HVD_API int hvd_add_process_sets_mpi(const void *communicator, int32_t *set);

/* Removes a set other than 0. Every rank of the job must call it, and all wait until all have.
 * Operations that are pending in the set fail with HVD_ERR_UNKNOWN_SET. */
HVD_API int hvd_remove_process_set(int32_t set);

/* The number of members, or this rank's number in the set. HVD_ERR_... (negative) on failure;
 * HVD_ERR_NOT_MEMBER: this rank has no number. */
HVD_API int hvd_process_set_size(int32_t set);
HVD_API int hvd_process_set_rank(int32_t set);

/* Writes the global ranks of the set, ascending, to `ranks`, which has room for `room` entries.
 * Returns their number, which may be more than `room`; then it wrote only `room`. */
HVD_API int hvd_process_set_ranks(int32_t set, int32_t *ranks, int32_t room);

/* The same for the numbers of all sets, ascending. */
HVD_API int hvd_process_set_ids(int32_t *sets, int32_t room);

/* ---- Timeline -----------------------------------------------------------------------------------
 */

/* Writes what the library does to the file `path`, as Chrome trace JSON. Only the rank 0 of the job
 * writes; on other ranks the calls do nothing. `mark_cycles` marks each agreement of the ranks. A
 * file that is already open for another path is closed. HVD_ERR_ARGUMENT: it cannot be created. */
HVD_API int hvd_timeline_start(const char *path, bool mark_cycles);
HVD_API int hvd_timeline_stop(void);

/* ---- Samplers -----------------------------------------------------------------------------------
 */

/* Divides the examples of a data set among the ranks. Each is processed once in each epoch, also
 * when the number of ranks changes. The order of an epoch is the same on all ranks: by number,
 * or shuffled by `seed` and the number of the epoch. Each rank takes each size-th example. The list
 * is filled up from its beginning, so that all ranks have equally many. One thread at a time may
 * use a sampler. */
struct hvd_sampler;

/* A sampler for the present ranks, in epoch 0. The library must be initialized. */
HVD_API int hvd_sampler_create(int64_t examples, bool shuffle, uint64_t seed,
                               struct hvd_sampler **sampler);
HVD_API void hvd_sampler_destroy(struct hvd_sampler *sampler); /* accepts NULL */

/* The examples of this rank in the rest of the epoch: how many, and the number of the i-th of them,
 * from 0 on. -1: `i` is out of range. */
HVD_API int64_t hvd_sampler_count(const struct hvd_sampler *sampler);
HVD_API int64_t hvd_sampler_at(const struct hvd_sampler *sampler, int64_t i);

/* Every rank has processed `examples` more of its own. It does not change what hvd_sampler_count()
 * and hvd_sampler_at() say. */
HVD_API void hvd_sampler_record(struct hvd_sampler *sampler, int64_t examples);

/* Begins another epoch, with all examples. */
HVD_API void hvd_sampler_set_epoch(struct hvd_sampler *sampler, int64_t epoch);
HVD_API int64_t hvd_sampler_epoch(const struct hvd_sampler *sampler);

/* ---- Elastic jobs -------------------------------------------------------------------------------
 */

/* The state of a program: memory that all ranks have alike between two steps, such as weights and
 * the number of the step. When ranks are lost or come, it goes on from the last commit. One thread
 * at a time may use a state. */
struct hvd_state;

/* A state without entries, and its end. */
HVD_API int hvd_state_create(struct hvd_state **state);
HVD_API void hvd_state_destroy(struct hvd_state *state); /* accepts NULL */

/* Adds `bytes` of memory, which must stay where it is. All ranks add the same entries, in the same
 * order, before the first commit. The state keeps a copy as large. `name`: 1 to 255 bytes. */
HVD_API int hvd_state_add(struct hvd_state *state, const char *name, void *memory, size_t bytes);
/* Adds the progress of a sampler, which must live as long as the state. */
HVD_API int hvd_state_add_sampler(struct hvd_state *state, const char *name,
                                  struct hvd_sampler *sampler);

/* Copies the memory, and then asks rank 0 for changed hosts. Every rank must call it at the same
 * place. HVD_ERR_HOSTS_CHANGED: hosts have joined or left; return it to hvd_elastic_run(). */
HVD_API int hvd_state_commit(struct hvd_state *state);
/* Only asks for changed hosts, and returns the same. Also collective. */
HVD_API int hvd_state_check(struct hvd_state *state);
/* Whether this rank has heard since the last call, of this function or of the two above, that hosts
 * have joined or left. It only looks: other ranks may hear of it later. false: also outside of
 * hvd_elastic_run(), and if the launcher is not elastic. */
HVD_API bool hvd_hosts_changed(struct hvd_state *state);
/* Only copies, back to the memory: what it was at the last commit. Nothing without a commit. */
HVD_API int hvd_state_restore(struct hvd_state *state);
/* All ranks get the memory of the rank with the newest commit: of the survivors the lowest rank.
 * Then it is copied, as by a commit. Collective. HVD_ERR_MISMATCH: the entries differ. */
HVD_API int hvd_state_sync(struct hvd_state *state);

/* A function that trains. It returns HVD_OK at the end, or at once the error of a function of this
 * library. */
typedef int (*hvd_elastic_function)(struct hvd_state *state, void *context);

/* Calls `function` again and again, each time after hvd_state_sync(), until it returns something
 * else than a change of the ranks. After HVD_ERR_PEER_LOST, HVD_ERR_SHUT_DOWN, HVD_ERR_TIMEOUT or
 * HVD_ERR_ENGINE it restores the state. After these and HVD_ERR_HOSTS_CHANGED it shuts the library
 * down. It waits until the launcher has a place for this rank in the next epoch, and initializes
 * the library there. So ranks and sizes differ from call to call, and process sets other than 0
 * must be added again. HVD_ERR_REMOVED: the job goes on without this rank: end the process. If the
 * launcher is not elastic, every error is returned. Call hvd_init() before. No other thread may use
 * the library, or the environment, between two calls of `function`. */
HVD_API int hvd_elastic_run(struct hvd_state *state, hvd_elastic_function function, void *context);

/* Milliseconds until the launcher will take this host away, at least 0. -1: there is no deadline.
 * Another negative value: an error. `reason` (may be NULL) has room for `room` bytes. */
HVD_API int64_t hvd_deadline(char *reason, size_t room);

#ifdef __cplusplus
}
#endif
