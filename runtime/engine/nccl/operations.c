/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/nccl/operations.h"

#include <math.h>
#include <string.h>

#include "core/request.h"
#include "engine/half.h"
#include "engine/nccl/libraries.h"

/* ---- Reductions ------------------------------------------------------------------------------ */

/* A product with it only changes the exponent. */
static bool is_power_of_two(double value)
{
    int exponent;
    return value > 0 && fpclassify(frexp(value, &exponent) - 0.5) == FP_ZERO;
}

/* -1: NCCL does not have it. */
static int type_of(enum hvd_type type)
{
    switch (type) {
    case HVD_UINT8:
    case HVD_BOOL: return NCCL_UINT8;
    case HVD_INT8: return NCCL_INT8;
    case HVD_INT32: return NCCL_INT32;
    case HVD_UINT32: return NCCL_UINT32;
    case HVD_INT64: return NCCL_INT64;
    case HVD_UINT64: return NCCL_UINT64;
    case HVD_FLOAT16: return NCCL_FLOAT16;
    case HVD_FLOAT32: return NCCL_FLOAT32;
    case HVD_FLOAT64: return NCCL_FLOAT64;
    case HVD_BFLOAT16: return NCCL_BFLOAT16;
    case HVD_INT16:
    case HVD_UINT16: break;
    }
    return -1;
}

/* -1: NCCL does not have it. */
static int op_of(enum hvd_type type, enum hvd_op op)
{
    bool is_bool = type == HVD_BOOL;
    switch (op) {
    case HVD_MIN: return NCCL_MIN;
    case HVD_MAX: return NCCL_MAX;
    case HVD_PRODUCT: return is_bool ? NCCL_MIN : NCCL_PRODUCT;
    case HVD_SUM:
    case HVD_AVERAGE: return is_bool ? NCCL_MAX : NCCL_SUM;
    default: return -1;
    }
}

/* Sums and averages of floating-point numbers. */
static void plan_sum(bool average, bool narrow, double prescale, double postscale, int size,
                     struct nccl_reduction *out)
{
    double after = average ? postscale / size : postscale;
    if (size == 1) { /* NCCL would multiply in the communicator of one rank */
        out->before = prescale;
        out->after = after;
    } else if (!factor_is_one(prescale)) {
        out->factor = prescale;
        out->after = after;
    } else if (average && factor_is_one(postscale)) {
        out->op = NCCL_AVERAGE;
    } else if (is_power_of_two(after) && !narrow) {
        out->factor = after; /* a sum of such products is the product of the sum */
    } else {
        out->after = after;
    }
}

enum hvd_status nccl_reduction_plan(enum hvd_type type, enum hvd_op op, double prescale,
                                    double postscale, int size, struct nccl_reduction *out,
                                    struct error *err)
{
    *out = (struct nccl_reduction){type_of(type), op_of(type, op), 1, 1, 1};
    if (size == 1 && op == HVD_AVERAGE)
        op = HVD_SUM;
    if (out->type < 0) {
        error_set(err, "NCCL cannot reduce %s", type == HVD_INT16 ? "int16" : "uint16");
        return HVD_ERR_UNSUPPORTED;
    }
    if (out->op < 0) {
        error_set(err, "NCCL does not have the operation %d", op);
        return HVD_ERR_UNSUPPORTED;
    }
    if (out->type < NCCL_FLOAT16) {
        if (op == HVD_AVERAGE)
            out->op = NCCL_AVERAGE;
        if (factor_is_one(prescale) && factor_is_one(postscale))
            return HVD_OK;
        error_set(err, "NCCL cannot scale integers");
        return HVD_ERR_UNSUPPORTED;
    }
    if (op == HVD_SUM || op == HVD_AVERAGE) {
        plan_sum(op == HVD_AVERAGE, type == HVD_FLOAT16, prescale, postscale, size, out);
    } else {
        out->before = prescale;
        out->after = postscale;
    }
    return HVD_OK;
}

size_t nccl_scalar(int type, double factor, void *out)
{
    const float single = (float)factor;
    const uint16_t half = type == NCCL_FLOAT16 ? fp16_of_float(single) : bf16_of_float(single);
    if (type == NCCL_FLOAT64)
        return memcpy(out, &factor, sizeof factor), sizeof factor;
    if (type == NCCL_FLOAT32)
        return memcpy(out, &single, sizeof single), sizeof single;
    return memcpy(out, &half, sizeof half), sizeof half;
}

/* ---- Operations ------------------------------------------------------------------------------ */

/* The first result of a group that is not a success counts. */
struct group {
    const struct nccl_comm *comm;
    int result;
    const char *what;
};

static struct group group_start(const struct nccl_comm *comm)
{
    return (struct group){comm, comm->setup.nccl->group_start(), "ncclGroupStart"};
}

static void note(struct group *group, int result, const char *what)
{
    if (group->result == NCCL_SUCCESS)
        *group = (struct group){group->comm, result, what};
}

static enum hvd_status group_end(struct group *group, struct error *err)
{
    note(group, group->comm->setup.nccl->group_end(), "ncclGroupEnd");
    return nccl_comm_result(group->comm, group->comm->handle, group->result, group->what, err);
}

/* A sum that multiplies its inputs by `factor` is an operation that NCCL makes. */
static enum hvd_status op_begin(struct nccl_comm *comm, void *handle, int type, double factor,
                                int *op, struct error *err)
{
    double scalar = 0; /* room for every type */
    nccl_scalar(type, factor, &scalar);
    int result = comm->setup.nccl->op_create(op, &scalar, type, NCCL_SCALAR_ON_HOST, handle);
    return nccl_comm_result(comm, handle, result, "ncclRedOpCreatePreMulSum", err);
}

/* A communicator of one rank runs blocks of SCALE_BYTES, at most SCALE_BLOCKS of them at a time.
 * NCCL (at least until 2.28) gives each block the same number of elements, and forgets those that
 * are left over. So this finds how many elements it can multiply with one call. */
static size_t scalable(size_t count, size_t type_bytes)
{
    enum { SCALE_BYTES = 16384, SCALE_BLOCKS = 32, PACK_BYTES = 16 };
    size_t bytes = count * type_bytes;
    size_t unit =
        bytes >= (size_t)SCALE_BYTES * SCALE_BLOCKS ? SCALE_BLOCKS * PACK_BYTES : SCALE_BYTES;
    return bytes < unit ? count : bytes / unit * unit / type_bytes;
}

/* Multiplies on this rank. */
static enum hvd_status scale(struct nccl_comm *comm, const struct nccl_tensor *tensors,
                             size_t count, int type, double factor, struct error *err)
{
    const struct nccl *nccl = comm->setup.nccl;
    double scalar;
    size_t type_bytes = nccl_scalar(type, factor, &scalar);
    int op = 0;
    enum hvd_status status = nccl_comm_need_alone(comm, err);
    if (status == HVD_OK)
        status = op_begin(comm, comm->alone, type, factor, &op, err);
    if (status != HVD_OK)
        return status;
    for (size_t i = 0; i < count && status == HVD_OK; i++) {
        const char *in = tensors[i].in;
        char *out = tensors[i].out;
        size_t left = in == NULL ? 0 : tensors[i].count;
        while (left > 0 && status == HVD_OK) {
            size_t part = scalable(left, type_bytes);
            int result = nccl->allreduce(in, out, part, type, op, comm->alone, comm->stream);
            status = nccl_comm_result(comm, comm->alone, result, "ncclAllReduce", err);
            in += part * type_bytes;
            out += part * type_bytes;
            left -= part;
        }
    }
    nccl->op_destroy(op, comm->alone);
    return status;
}

/* Zeros for the tensors that this rank does not have. */
static enum hvd_status make_zeros(struct nccl_comm *comm, const struct nccl_tensor *tensors,
                                  size_t count, size_t type_bytes, struct error *err)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        if (tensors[i].in == NULL)
            bytes += tensors[i].count * type_bytes;
    if (bytes == 0)
        return HVD_OK;
    enum hvd_status status = nccl_comm_reserve(comm, bytes, err);
    if (status != HVD_OK)
        return status;
    return nccl_comm_cuda(comm,
                          comm->setup.gpu->cuda->set_bytes(comm->buffer, 0, bytes, comm->stream),
                          "cuMemsetD8Async", err);
}

static void *at(cuda_pointer base, size_t offset)
{
    return (void *)(uintptr_t)(base + offset);
}

static enum hvd_status reduce_all(struct nccl_comm *comm, const struct nccl_tensor *tensors,
                                  size_t count, size_t type_bytes, int type, int op, bool scaled,
                                  struct error *err)
{
    struct group group = group_start(comm);
    size_t zeros = 0;
    for (size_t i = 0; i < count; i++) {
        const struct nccl_tensor *tensor = &tensors[i];
        const void *in = scaled ? tensor->out : tensor->in;
        void *out = tensor->out;
        if (tensor->count == 0)
            continue;
        if (tensor->in == NULL) {
            in = out = at(comm->buffer, zeros);
            zeros += tensor->count * type_bytes;
        }
        note(&group,
             comm->setup.nccl->allreduce(in, out, tensor->count, type, op, comm->handle,
                                         comm->stream),
             "ncclAllReduce");
    }
    return group_end(&group, err);
}

/* The results as inputs of another pass. */
static enum hvd_status scale_results(struct nccl_comm *comm, const struct nccl_tensor *tensors,
                                     size_t count, int type, double factor, struct error *err)
{
    enum hvd_status status = HVD_OK;
    for (size_t i = 0; i < count && status == HVD_OK; i++) {
        struct nccl_tensor result = tensors[i];
        if (result.in != NULL)
            result.in = result.out;
        status = scale(comm, &result, 1, type, factor, err);
    }
    return status;
}

enum hvd_status nccl_allreduce(struct nccl_comm *comm, const struct nccl_tensor *tensors,
                               size_t count, size_t type_bytes,
                               const struct nccl_reduction *reduction, struct error *err)
{
    bool multiplies = !factor_is_one(reduction->factor), scaled = !factor_is_one(reduction->before);
    int op = reduction->op;
    enum hvd_status status = make_zeros(comm, tensors, count, type_bytes, err);
    if (status == HVD_OK && scaled)
        status = scale(comm, tensors, count, reduction->type, reduction->before, err);
    if (status == HVD_OK && multiplies)
        status = op_begin(comm, comm->handle, reduction->type, reduction->factor, &op, err);
    if (status != HVD_OK)
        return status;
    status = reduce_all(comm, tensors, count, type_bytes, reduction->type, op, scaled, err);
    if (multiplies)
        comm->setup.nccl->op_destroy(op, comm->handle);
    if (status == HVD_OK && !factor_is_one(reduction->after))
        status = scale_results(comm, tensors, count, reduction->type, reduction->after, err);
    return status;
}

/* Parts that differ in size are a reduction to each rank. */
static enum hvd_status reduce_parts(struct nccl_comm *comm, const char *in, void *out,
                                    const size_t *counts, size_t type_bytes, int type, int op,
                                    struct error *err)
{
    const struct nccl *nccl = comm->setup.nccl;
    struct group group = group_start(comm);
    bool even = true;
    for (int i = 1; i < comm->setup.size; i++)
        even = even && counts[i] == counts[0];
    if (even)
        note(&group, nccl->reducescatter(in, out, counts[0], type, op, comm->handle, comm->stream),
             "ncclReduceScatter");
    for (int i = 0; i < comm->setup.size && !even; i++) {
        if (counts[i] > 0)
            note(&group,
                 nccl->reduce(in, i == comm->setup.rank ? out : NULL, counts[i], type, op, i,
                              comm->handle, comm->stream),
                 "ncclReduce");
        in += counts[i] * type_bytes;
    }
    return group_end(&group, err);
}

static enum hvd_status copy(const struct nccl_comm *comm, void *to, const void *from, size_t bytes,
                            struct error *err)
{
    if (bytes == 0 || to == from)
        return HVD_OK;
    return nccl_comm_cuda(
        comm,
        comm->setup.gpu->cuda->copy(cuda_address(to), cuda_address(from), bytes, comm->stream),
        "cuMemcpyDtoDAsync", err);
}

enum hvd_status nccl_reducescatter(struct nccl_comm *comm, const void *in, void *out,
                                   const size_t *counts, size_t type_bytes,
                                   const struct nccl_reduction *reduction, struct error *err)
{
    bool multiplies = !factor_is_one(reduction->factor);
    size_t total = 0, mine = counts[comm->setup.rank];
    int op = reduction->op;
    enum hvd_status status = HVD_OK;
    for (int i = 0; i < comm->setup.size; i++)
        total += counts[i];
    bool scaled = !factor_is_one(reduction->before);
    if (scaled || in == out) { /* the result would overwrite what others still need */
        status = nccl_comm_reserve(comm, total * type_bytes, err);
        const struct nccl_tensor copied = {in, at(comm->buffer, 0), total};
        if (status == HVD_OK && scaled)
            status = scale(comm, &copied, 1, reduction->type, reduction->before, err);
        else if (status == HVD_OK)
            status = copy(comm, copied.out, in, total * type_bytes, err);
        in = copied.out;
    }
    if (status == HVD_OK && multiplies)
        status = op_begin(comm, comm->handle, reduction->type, reduction->factor, &op, err);
    if (status != HVD_OK)
        return status;
    status = reduce_parts(comm, in, out, counts, type_bytes, reduction->type, op, err);
    if (multiplies)
        comm->setup.nccl->op_destroy(op, comm->handle);
    const struct nccl_tensor result = {out, out, mine};
    if (status == HVD_OK && mine > 0 && !factor_is_one(reduction->after))
        status = scale(comm, &result, 1, reduction->type, reduction->after, err);
    return status;
}

enum hvd_status nccl_allgatherv(struct nccl_comm *comm, const void *in, void *out,
                                const size_t *bytes, struct error *err)
{
    const struct nccl *nccl = comm->setup.nccl;
    struct group group = group_start(comm);
    bool even = true;
    char *to = out;
    for (int i = 1; i < comm->setup.size; i++)
        even = even && bytes[i] == bytes[0];
    if (even)
        note(&group, nccl->allgather(in, out, bytes[0], NCCL_INT8, comm->handle, comm->stream),
             "ncclAllGather");
    for (int i = 0; i < comm->setup.size && !even; i++) {
        if (bytes[i] > 0)
            note(&group,
                 nccl->broadcast(i == comm->setup.rank ? in : to, to, bytes[i], NCCL_INT8, i,
                                 comm->handle, comm->stream),
                 "ncclBroadcast");
        to += bytes[i];
    }
    return group_end(&group, err);
}

enum hvd_status nccl_alltoallv(struct nccl_comm *comm, const void *in, const size_t *send_bytes,
                               void *out, const size_t *receive_bytes, struct error *err)
{
    const struct nccl *nccl = comm->setup.nccl;
    struct group group = group_start(comm);
    const char *from = in;
    char *to = out;
    for (int i = 0; i < comm->setup.size; i++) {
        if (send_bytes[i] > 0)
            note(&group, nccl->send(from, send_bytes[i], NCCL_INT8, i, comm->handle, comm->stream),
                 "ncclSend");
        if (receive_bytes[i] > 0)
            note(&group,
                 nccl->receive(to, receive_bytes[i], NCCL_INT8, i, comm->handle, comm->stream),
                 "ncclRecv");
        from += send_bytes[i];
        to += receive_bytes[i];
    }
    return group_end(&group, err);
}

enum hvd_status nccl_broadcast(struct nccl_comm *comm, const void *in, void *out, size_t bytes,
                               int root, struct error *err)
{
    bool is_root = comm->setup.rank == root;
    /* The root's input is only read, so NCCL gets it as the output if there is not another. */
    void *to = is_root && out == NULL ? (void *)(uintptr_t)in : out;
    int result = comm->setup.nccl->broadcast(is_root ? in : out, to, bytes, NCCL_INT8, root,
                                             comm->handle, comm->stream);
    return nccl_comm_result(comm, comm->handle, result, "ncclBroadcast", err);
}
