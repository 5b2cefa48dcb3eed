/* SPDX-License-Identifier: Apache-2.0 */
/* libnccl.so.2: see fake.h. The functions have the names and parameters of NCCL. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/mem.h"
#include "engine/half.h"
#include "engine/nccl/libraries.h"
#include "fake.h"
#include "kernels.h"

enum { VERSION = 22809, INTERNAL_ERROR = 3, INVALID_ARGUMENT = 4, FIRST_OP = 5, OPS_MAX = 16 };

struct comm {
    struct mesh *mesh;
    pthread_mutex_t lock;
    pthread_cond_t landed;
    int running; /* kernels in streams */
    struct scalar ops[OPS_MAX];
    struct mesh_part *parts; /* of the group's sends and receives; NULL: none */
    void *parts_stream;
};

/* A kernel in a stream. */
struct launch {
    struct comm *comm;
    struct kernel kernel;
    bool stalls;
};

/* The communicators that have sends in the open group: one is enough for libhvd. */
static _Thread_local struct comm *group_comm;
static _Thread_local int group_depth;

#define FUNCTION(type, name, parameters) \
    FAKE_API type name parameters;       \
    type name parameters
#define FAULTS(function)                       \
    if (fake_fault("FAKE_GPU_FAIL", function)) \
    return INTERNAL_ERROR

FUNCTION(const char *, ncclGetErrorString, (int result))
{
    return result == INTERNAL_ERROR ? "internal error" : "an error";
}

FUNCTION(const char *, ncclGetLastError, (void *comm))
{
    (void)comm;
    return "a fault of the test";
}

FUNCTION(int, ncclGetVersion, (int *version))
{
    FAULTS("ncclGetVersion");
    *version = VERSION;
    return NCCL_SUCCESS;
}

FUNCTION(int, ncclGetUniqueId, (struct nccl_id * id))
{
    uint64_t random = 0;
    FAULTS("ncclGetUniqueId");
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        return INTERNAL_ERROR;
    snprintf(id->bytes, sizeof id->bytes, "fake-nccl-%llx", (unsigned long long)random);
    return NCCL_SUCCESS;
}

/* ---- Communicators --------------------------------------------------------------------------- */

/* As NCCL: nothing ends it if a rank does not come. */
FUNCTION(int, ncclCommInitRank, (void **out, int size, struct nccl_id id, int rank))
{
    FAULTS("ncclCommInitRank");
    if (rank >= size)
        return INVALID_ARGUMENT;
    while (fake_fault("FAKE_GPU_ABSENT", "ncclCommInitRank"))
        poll(NULL, 0, -1);
    struct comm *comm = mem_alloc(sizeof *comm);
    comm->mesh = mesh_new(rank, size);
    pthread_mutex_init(&comm->lock, NULL);
    pthread_cond_init(&comm->landed, NULL);
    mesh_connect(comm->mesh, id.bytes);
    *out = comm;
    return NCCL_SUCCESS;
}

FUNCTION(int, ncclCommGetAsyncError, (void *handle, int *result))
{
    (void)handle;
    FAULTS("ncclCommGetAsyncError");
    *result = NCCL_SUCCESS;
    return NCCL_SUCCESS;
}

static void wait_for_kernels(struct comm *comm)
{
    pthread_mutex_lock(&comm->lock);
    while (comm->running > 0)
        pthread_cond_wait(&comm->landed, &comm->lock);
    pthread_mutex_unlock(&comm->lock);
}

FUNCTION(int, ncclCommAbort, (void *handle))
{
    struct comm *comm = handle;
    atomic_store(&comm->mesh->stop, true);
    wait_for_kernels(comm);
    mesh_free(comm->mesh);
    pthread_mutex_destroy(&comm->lock);
    pthread_cond_destroy(&comm->landed);
    free(comm->parts);
    free(comm);
    return NCCL_SUCCESS;
}

/* ---- Operations ------------------------------------------------------------------------------ */

static void run(void *argument)
{
    struct launch *launch = argument;
    struct comm *comm = launch->comm;
    while (launch->stalls && !atomic_load(&comm->mesh->stop))
        poll(NULL, 0, 5);
    if (!atomic_load(&comm->mesh->stop))
        kernel_run(comm->mesh, &launch->kernel);
    free(launch->kernel.parts);
    free(launch);
    pthread_mutex_lock(&comm->lock);
    comm->running--;
    pthread_cond_broadcast(&comm->landed);
    pthread_mutex_unlock(&comm->lock);
}

static int add(struct comm *comm, struct kernel kernel, void *stream)
{
    struct launch *launch = mem_alloc(sizeof *launch);
    if (kernel.op >= FIRST_OP)
        kernel.scalar = comm->ops[kernel.op - FIRST_OP];
    kernel.in = fake_shadow(kernel.in);
    kernel.out = fake_shadow(kernel.out);
    *launch = (struct launch){comm, kernel, fake_fault("FAKE_GPU_STALL", "ncclKernel")};
    pthread_mutex_lock(&comm->lock);
    comm->running++;
    pthread_mutex_unlock(&comm->lock);
    fake_stream_add(stream, run, launch);
    return NCCL_SUCCESS;
}

FUNCTION(int, ncclRedOpCreatePreMulSum,
         (int *op, void *scalar, int type, int residence, void *handle))
{
    struct comm *comm = handle;
    uint16_t half;
    float single;
    double value = 0;
    if (residence != NCCL_SCALAR_ON_HOST || type < NCCL_FLOAT16)
        return INVALID_ARGUMENT;
    memcpy(&half, scalar, sizeof half);
    memcpy(&single, scalar, sizeof single);
    memcpy(&value, scalar, sizeof value);
    for (int i = 0; i < OPS_MAX; i++) {
        if (comm->ops[i].used)
            continue;
        comm->ops[i].used = true;
        comm->ops[i].value = type == NCCL_FLOAT16    ? float_of_fp16(half)
                             : type == NCCL_BFLOAT16 ? float_of_bf16(half)
                             : type == NCCL_FLOAT32  ? single
                                                     : value;
        *op = FIRST_OP + i;
        return NCCL_SUCCESS;
    }
    return INTERNAL_ERROR; /* somebody forgets to destroy them */
}

FUNCTION(int, ncclRedOpDestroy, (int op, void *handle))
{
    struct comm *comm = handle;
    comm->ops[op - FIRST_OP].used = false;
    return NCCL_SUCCESS;
}

FUNCTION(int, ncclAllReduce,
         (const void *in, void *out, size_t count, int type, int op, void *comm, void *stream))
{
    FAULTS("ncclAllReduce");
    return add(comm, (struct kernel){ALL_REDUCE, in, out, count, type, op, 0, {0}, NULL}, stream);
}

FUNCTION(int, ncclReduce,
         (const void *in, void *out, size_t count, int type, int op, int root, void *comm,
          void *stream))
{
    FAULTS("ncclReduce");
    return add(comm, (struct kernel){REDUCE, in, out, count, type, op, root, {0}, NULL}, stream);
}

FUNCTION(int, ncclReduceScatter,
         (const void *in, void *out, size_t count, int type, int op, void *comm, void *stream))
{
    FAULTS("ncclReduceScatter");
    return add(comm, (struct kernel){REDUCE_SCATTER, in, out, count, type, op, 0, {0}, NULL},
               stream);
}

FUNCTION(int, ncclAllGather,
         (const void *in, void *out, size_t count, int type, void *comm, void *stream))
{
    FAULTS("ncclAllGather");
    return add(comm, (struct kernel){ALL_GATHER, in, out, count, type, 0, 0, {0}, NULL}, stream);
}

FUNCTION(int, ncclBroadcast,
         (const void *in, void *out, size_t count, int type, int root, void *comm, void *stream))
{
    FAULTS("ncclBroadcast");
    return add(comm, (struct kernel){BROADCAST, in, out, count, type, 0, root, {0}, NULL}, stream);
}

static struct mesh_part *part_of(struct comm *comm, int rank, void *stream)
{
    if (comm->parts == NULL)
        comm->parts = mem_array((size_t)comm->mesh->size, sizeof *comm->parts);
    comm->parts_stream = stream;
    group_comm = comm;
    return &comm->parts[rank];
}

FUNCTION(int, ncclSend, (const void *in, size_t count, int type, int to, void *comm, void *stream))
{
    FAULTS("ncclSend");
    if (group_depth == 0)
        return INVALID_ARGUMENT; /* libhvd always uses groups */
    struct mesh_part *part = part_of(comm, to, stream);
    part->out = fake_shadow(in);
    part->out_bytes = count * kernel_type_bytes(type);
    return NCCL_SUCCESS;
}

FUNCTION(int, ncclRecv, (void *out, size_t count, int type, int from, void *comm, void *stream))
{
    FAULTS("ncclRecv");
    if (group_depth == 0)
        return INVALID_ARGUMENT;
    struct mesh_part *part = part_of(comm, from, stream);
    part->in = fake_shadow(out);
    part->in_bytes = count * kernel_type_bytes(type);
    return NCCL_SUCCESS;
}

FUNCTION(int, ncclGroupStart, (void))
{
    FAULTS("ncclGroupStart");
    group_depth++;
    return NCCL_SUCCESS;
}

FUNCTION(int, ncclGroupEnd, (void))
{
    struct comm *comm = group_comm;
    group_depth--;
    FAULTS("ncclGroupEnd");
    group_comm = NULL;
    if (comm == NULL)
        return NCCL_SUCCESS;
    struct kernel kernel = {.kind = TO_ALL, .parts = comm->parts};
    comm->parts = NULL;
    return add(comm, kernel, comm->parts_stream);
}
