/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/checks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/request.h"
#include "engine/adasum.h"
#include "engine/elements.h"
#include "engine/nccl/operations.h"
#include "loop/gpu_moves.h"

int checks_tensor_copy(const struct hvd_tensor *from, struct hvd_tensor *to, struct error *err)
{
    *to = (struct hvd_tensor)HVD_TENSOR_INIT;
    if (from == NULL)
        return error_set(err, "the tensor is NULL");
    if (from->size < sizeof from->size)
        return error_set(err, "the size of the tensor's struct is not set: use HVD_TENSOR_INIT");
    memcpy(to, from, from->size < sizeof *to ? from->size : sizeof *to);
    return 0;
}

int checks_options_copy(const struct hvd_options *from, struct hvd_options *to, struct error *err)
{
    *to = (struct hvd_options)HVD_OPTIONS_INIT;
    if (from == NULL)
        return 0;
    if (from->size < sizeof from->size)
        return error_set(err, "the size of the options' struct is not set: use HVD_OPTIONS_INIT");
    memcpy(to, from, from->size < sizeof *to ? from->size : sizeof *to);
    return 0;
}

static int check_shape(const struct hvd_tensor *tensor, struct error *err)
{
    if (hvd_type_bytes(tensor->type) == 0)
        return error_set(err, "%d is not a type", tensor->type);
    if (tensor->dims < 0 || tensor->dims > HVD_DIMS_MAX)
        return error_set(err, "the tensor has %d dimensions, and the limit is %d", tensor->dims,
                         HVD_DIMS_MAX);
    if (tensor->dims > 0 && tensor->shape == NULL)
        return error_set(err, "the shape of the tensor is NULL");
    for (int32_t i = 0; i < tensor->dims; i++)
        if (tensor->shape[i] < 0)
            return error_set(err, "the length %lld of dimension %d is negative",
                             (long long)tensor->shape[i], i);
    return 0;
}

static int check_name(const char *name, struct error *err)
{
    if (name == NULL || name[0] == '\0')
        return error_set(err, "the tensor does not have a name");
    return strnlen(name, HVD_NAME_MAX + 1) <= HVD_NAME_MAX
               ? 0
               : error_set(err, "the name of the tensor has more than %d bytes", HVD_NAME_MAX);
}

static int check_buffer(const void *buffer, const char *what, const struct request *request,
                        size_t elements, struct error *err)
{
    if (elements == 0)
        return 0;
    if (buffer == NULL)
        return error_set(err, "the %s of '%.200s' is NULL", what, request_name(request));
    if ((uintptr_t)buffer % hvd_type_bytes((int)request->type) != 0)
        return error_set(err, "the %s of '%.200s' is not aligned for its type", what,
                         request_name(request));
    return 0;
}

static int check_reduction(const struct call *call, struct error *err)
{
    const struct hvd_options *options = call->options;
    bool average = options->op == HVD_AVERAGE, sum = options->op == HVD_SUM;
    enum hvd_op op = average ? HVD_SUM : (enum hvd_op)options->op;
    if (call->kind == KIND_REDUCESCATTER && !average && !sum)
        return error_set(err, "reducescatter has only the operations sum and average");
    if (op == HVD_ADASUM)
        return adasum_has_type((enum hvd_type)call->tensor->type)
                   ? 0
                   : error_set(err, "adasum is only for floating-point types, and not for %s",
                               hvd_type_name(call->tensor->type));
    if (reduce_find((enum hvd_type)call->tensor->type, op) == NULL)
        return error_set(err, "%d is not an operation of allreduce", options->op);
    if (call->tensor->type == HVD_BOOL &&
        (average || !factor_is_one(options->prescale) || !factor_is_one(options->postscale)))
        return error_set(err, "bool has neither an average nor a scale");
    return 0;
}

static int check_root(const struct process_set *set, int root, struct error *err)
{
    for (int i = 0; i < set->count; i++)
        if (set->ranks[i] == root)
            return 0;
    return error_set(err, "the root %d is not a rank of the process set %d", root, set->id);
}

static int check_splits(const struct process_set *set, const int64_t *splits, int64_t rows,
                        struct error *err)
{
    int64_t left = rows;
    if (splits == NULL && rows % set->count != 0)
        return error_set(err, "%lld rows are not a multiple of %d ranks: give the splits",
                         (long long)rows, set->count);
    for (int i = 0; splits != NULL && i < set->count; i++) {
        if (splits[i] < 0)
            return error_set(err, "the split %lld for set rank %d is negative",
                             (long long)splits[i], i);
        if (splits[i] > left)
            return error_set(err, "the sum of the splits is more than the %lld rows",
                             (long long)rows);
        left -= splits[i];
    }
    return 0;
}

static int check_buffers(const struct process_set *set, const struct call *call,
                         const struct request *request, struct error *err)
{
    const struct hvd_tensor *tensor = call->tensor;
    size_t elements = request_elements(request), in = elements, out = elements;
    bool is_root = call->kind == KIND_BROADCAST && set->ranks[set->rank] == call->root;
    if (call->kind == KIND_BROADCAST && !is_root)
        in = 0;
    if (call->kind == KIND_ALLGATHER || call->kind == KIND_ALLTOALL ||
        (is_root && tensor->output == NULL))
        out = 0;
    if (call->kind == KIND_REDUCESCATTER)
        out = request_slice(request, set->rank, set->count).count;
    if (check_buffer(tensor->input, "input", request, in, err) != 0)
        return -1;
    return check_buffer(tensor->output, "output", request, out, err);
}

/* After the name and the shape: the rest, of a request that is complete. */
static int check_tensor_call(const struct process_set *set, const struct call *call,
                             const struct request *request, struct error *err)
{
    bool reduces = call->kind == KIND_ALLREDUCE || call->kind == KIND_REDUCESCATTER;
    bool has_rows = call->kind == KIND_ALLGATHER || call->kind == KIND_ALLTOALL ||
                    call->kind == KIND_REDUCESCATTER;
    if (request_bytes(request) > PTRDIFF_MAX)
        return error_set(err, "the tensor '%.200s' has more elements than memory can have",
                         request_name(request));
    if (has_rows && request->dims == 0)
        return error_set(err, "%s: the tensor '%.200s' is a scalar, and needs a first dimension",
                         kind_text(call->kind), request_name(request));
    if (reduces && check_reduction(call, err) != 0)
        return -1;
    if (call->kind == KIND_BROADCAST && check_root(set, call->root, err) != 0)
        return -1;
    if (call->kind == KIND_ALLTOALL && check_splits(set, call->splits, request->shape[0], err) != 0)
        return -1;
    return check_buffers(set, call, request, err);
}

/* ---- Where the memory is --------------------------------------------------------------------- */

static const char *memory_text(int device, char *text, size_t room)
{
    snprintf(text, room, device < 0 ? "host memory" : "GPU %d", device);
    return text;
}

/* The GPU that has the tensor's memory; -1: the host. -2 and an error: it is in two places. */
static int device_of(const struct process_set *set, const struct hvd_tensor *tensor,
                     struct error *err)
{
    char one[32], other[32];
    struct gpus *gpus = set->maker->owner->gpus;
    const void *input = tensor->input != NULL ? tensor->input : tensor->output;
    const void *output = tensor->output != NULL ? tensor->output : tensor->input;
    int in = gpus_find(gpus, input);
    int out = output == input ? in : gpus_find(gpus, output);
    if (input == NULL)
        in = out = tensor->device;
    if (in != out)
        error_set(err, "the input of '%.200s' is in %s, and the output is in %s", tensor->name,
                  memory_text(in, one, sizeof one), memory_text(out, other, sizeof other));
    else if (tensor->device != HVD_DEVICE_OF_MEMORY && tensor->device != in)
        error_set(err, "'%.200s' is in %s, and not in %s", tensor->name,
                  memory_text(in, one, sizeof one),
                  memory_text(tensor->device, other, sizeof other));
    else
        return in;
    return -2;
}

/* What NCCL cannot do is refused before others wait for it. */
static enum hvd_status check_nccl(const struct process_set *set, const struct request *request,
                                  int device, struct error *err)
{
    struct nccl_reduction reduction;
    int used = gpu_set_claim(set->executor.gpu_set, device);
    if (used != device) {
        error_set(err,
                  "'%.200s' is on GPU %d, and this rank uses GPU %d for the process set %d: use "
                  "one GPU for each process",
                  request_name(request), device, used, set->id);
        return HVD_ERR_UNSUPPORTED;
    }
    if (request->kind != KIND_ALLREDUCE && request->kind != KIND_REDUCESCATTER)
        return HVD_OK;
    if (gpu_stage_has(request)) /* it has its own check */
        return HVD_OK;
    if (nccl_reduction_plan(request->type, request->op, request->prescale, request->postscale,
                            set->count, &reduction, err) == HVD_OK)
        return HVD_OK;
    error_wrap(err, "'%.200s' is on a GPU", request_name(request));
    return HVD_ERR_UNSUPPORTED;
}

/* Tensors of one call that the same stream computes are ready at the same mark. */
static struct gpu_mark *mark_for(struct gpu *gpu, const struct call *call, struct error *err)
{
    struct gpu_mark *before = call->ready;
    bool same = before != NULL && before->gpu == gpu && before->stream == call->tensor->stream;
    return same ? gpu_mark_hold(before) : gpu_mark(gpu, call->tensor->stream, err);
}

static enum hvd_status check_memory(const struct process_set *set, const struct call *call,
                                    struct request *request, struct submission *token,
                                    struct error *err)
{
    const struct hvd_tensor *tensor = call->tensor;
    int device = device_of(set, tensor, err);
    if (device < 0)
        return device == -1 ? HVD_OK : HVD_ERR_ARGUMENT;
    enum hvd_status status = check_nccl(set, request, device, err);
    if (status != HVD_OK)
        return status;
    struct gpu *gpu = gpus_get(set->maker->owner->gpus, device, err);
    if (gpu == NULL)
        return HVD_ERR_ARGUMENT;
    token->ready = mark_for(gpu, call, err);
    if (token->ready == NULL) {
        error_wrap(err, "the stream of '%.200s'", request_name(request));
        return HVD_ERR_ARGUMENT;
    }
    request->on_gpu = true;
    return HVD_OK;
}

enum hvd_status checks_call(const struct process_set *set, const struct call *call,
                            struct request *request, struct submission *token, struct error *err)
{
    const struct hvd_tensor *tensor = call->tensor;
    if (tensor != NULL && (check_name(tensor->name, err) != 0 || check_shape(tensor, err) != 0))
        return HVD_ERR_ARGUMENT;
    *request = request_bare(call->kind, tensor == NULL ? NULL : tensor->name);
    request->priority = call->options->priority;
    if (tensor != NULL) {
        request->type = (enum hvd_type)tensor->type;
        request->dims = tensor->dims;
        request->shape = tensor->dims == 0
                             ? NULL
                             : mem_dup(tensor->shape, (size_t)tensor->dims * sizeof(int64_t));
        request->root = call->kind == KIND_BROADCAST ? call->root : 0;
        if (check_tensor_call(set, call, request, err) != 0) {
            request_destroy(request);
            return HVD_ERR_ARGUMENT;
        }
        if (call->kind == KIND_ALLREDUCE || call->kind == KIND_REDUCESCATTER) {
            request->op = (enum hvd_op)call->options->op;
            request->prescale = call->options->prescale;
            request->postscale = call->options->postscale;
        }
        token->input = tensor->input;
        token->output = tensor->output;
        if (call->splits != NULL)
            token->splits = mem_dup(call->splits, (size_t)set->count * sizeof(int64_t));
        enum hvd_status status = check_memory(set, call, request, token, err);
        if (status != HVD_OK) {
            request_destroy(request);
            return status;
        }
    }
    token->set = set->id;
    return HVD_OK;
}
