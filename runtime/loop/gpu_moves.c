/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/gpu_moves.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "engine/elements.h"

enum { STEP_MS = 1 };
#define NS_PER_S 1000000000

const char *gpu_moves_activity(const struct request *request)
{
    if (gpu_stage_has(request))
        return "ADASUM_ALLREDUCE";
    switch (request->kind) {
    case KIND_ALLREDUCE: return "NCCL_ALLREDUCE";
    case KIND_ALLGATHER: return "NCCL_ALLGATHER";
    case KIND_ALLTOALL: return "NCCL_ALLTOALL";
    case KIND_BROADCAST: return "NCCL_BCAST";
    default: return "NCCL_REDUCESCATTER";
    }
}

static enum hvd_status allreduce(const struct runner *runner, struct nccl_comm *comm,
                                 const struct part *parts, size_t count, struct error *err)
{
    const struct request *first = &parts[0].request;
    struct nccl_tensor *tensors AUTO_FREE = mem_array(count, sizeof *tensors);
    struct nccl_reduction reduction;
    for (size_t i = 0; i < count; i++) {
        const struct submission *submission = parts[i].token;
        tensors[i].count = request_elements(&parts[i].request);
        tensors[i].in = submission == NULL ? NULL : submission->input;
        tensors[i].out = submission == NULL ? NULL : submission->output;
    }
    enum hvd_status status = nccl_reduction_plan(first->type, first->op, first->prescale,
                                                 first->postscale, runner->size, &reduction, err);
    return status == HVD_OK ? nccl_allreduce(comm, tensors, count, hvd_type_bytes((int)first->type),
                                             &reduction, err)
                            : status;
}

static enum hvd_status reducescatter(const struct runner *runner, struct nccl_comm *comm,
                                     const struct part *part, struct error *err)
{
    const struct request *request = &part->request;
    const struct submission *submission = part->token;
    size_t *counts AUTO_FREE = mem_array((size_t)runner->size, sizeof *counts);
    struct nccl_reduction reduction;
    for (int i = 0; i < runner->size; i++)
        counts[i] = request_slice(request, i, runner->size).count;
    enum hvd_status status = nccl_reduction_plan(request->type, request->op, request->prescale,
                                                 request->postscale, runner->size, &reduction, err);
    if (status != HVD_OK || request_elements(request) == 0)
        return status;
    return nccl_reducescatter(comm, submission->input, submission->output, counts,
                              hvd_type_bytes((int)request->type), &reduction, err);
}

static enum hvd_status broadcast(const struct runner *runner, struct nccl_comm *comm,
                                 const struct part *part, struct error *err)
{
    const struct submission *submission = part->token;
    size_t bytes = request_bytes(&part->request);
    return bytes == 0 ? HVD_OK
                      : nccl_broadcast(comm, submission->input, submission->output, bytes,
                                       runner_root(runner, &part->request), err);
}

/* ---- Results whose size the members exchange first ------------------------------------------- */

static enum hvd_status move(struct nccl_comm *comm, const struct part *part,
                            const struct layout *layout, struct error *err)
{
    const struct submission *submission = part->token;
    return part->request.kind == KIND_ALLGATHER
               ? nccl_allgatherv(comm, submission->input, layout->data, layout->receive, err)
               : nccl_alltoallv(comm, submission->input, layout->send, layout->data,
                                layout->receive, err);
}

/* Others may send nothing to this rank, and wait for what it sends to them. */
static enum hvd_status move_into_new(struct nccl_comm *comm, const struct part *part,
                                     struct layout *layout, struct error *err)
{
    const struct cuda *cuda = comm->setup.gpu->cuda;
    cuda_pointer data = 0;
    enum hvd_status status = HVD_OK;
    if (layout->total > 0)
        status = nccl_comm_cuda(comm, cuda->memory_take(&data, layout->total, comm->stream),
                                "cuMemAllocAsync", err);
    layout->data = (void *)(uintptr_t)data;
    if (status == HVD_OK && (layout->total > 0 || part->request.kind == KIND_ALLTOALL))
        status = move(comm, part, layout, err);
    if (status == HVD_OK)
        return status;
    if (data != 0)
        cuda->memory_give(data, comm->stream);
    layout->data = NULL;
    return status;
}

static enum hvd_status gather(struct runner *runner, struct nccl_comm *comm,
                              const struct part *part, struct outcome *outcome, struct error *err)
{
    struct layout layout;
    layout_init(runner, &part->request, &layout);
    enum hvd_status status = layout_exchange(runner, part, &layout, err);
    if (status == HVD_OK)
        status = move_into_new(comm, part, &layout, err);
    if (status == HVD_OK)
        layout_give(runner, &layout, outcome);
    layout_destroy(runner, &layout);
    return status;
}

void gpu_moves_drop(struct nccl_comm *comm, struct outcome *outcomes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (outcomes[i].data != NULL)
            comm->setup.gpu->cuda->memory_give(cuda_address(outcomes[i].data), comm->stream);
        free(outcomes[i].splits);
        outcomes[i] = (struct outcome)OUTCOME_INIT;
    }
}

static enum hvd_status launch_one(struct runner *runner, struct nccl_comm *comm,
                                  const struct part *part, struct outcome *outcome,
                                  struct error *err)
{
    switch (part->request.kind) {
    case KIND_ALLGATHER:
    case KIND_ALLTOALL: return gather(runner, comm, part, outcome, err);
    case KIND_BROADCAST: return broadcast(runner, comm, part, err);
    default: return reducescatter(runner, comm, part, err);
    }
}

enum hvd_status gpu_moves_launch(struct runner *runner, struct nccl_comm *comm,
                                 const struct part *parts, size_t count, struct outcome *outcomes,
                                 struct error *err)
{
    enum hvd_status status = HVD_OK;
    if (parts[0].request.kind == KIND_ALLREDUCE)
        return allreduce(runner, comm, parts, count, err);
    for (size_t i = 0; i < count && status == HVD_OK; i++)
        status = launch_one(runner, comm, &parts[i], &outcomes[i], err);
    if (status != HVD_OK)
        gpu_moves_drop(comm, outcomes, count);
    return status;
}

/* ---- Operations that NCCL does not have ------------------------------------------------------ */

bool gpu_stage_has(const struct request *request)
{
    return request->kind == KIND_ALLREDUCE && request->op == HVD_ADASUM;
}

static enum hvd_status wait_for_mark(const struct nccl_comm *comm, const struct gpu_mark *mark,
                                     int64_t limit_ns, struct error *err)
{
    int64_t end_ns = clock_mono_ns() + limit_ns;
    for (;;) {
        int result = comm->setup.gpu->cuda->event_query(mark->event);
        if (result != CUDA_ERROR_NOT_READY)
            return nccl_comm_cuda(comm, result, "the GPU failed", err);
        if (comm->setup.stop(comm->setup.context)) {
            error_set(err, "another rank was lost");
            return HVD_ERR_PEER_LOST;
        }
        if (clock_mono_ns() >= end_ns) {
            error_set(err, "the GPU has not computed the tensors within %lld s",
                      (long long)(limit_ns / NS_PER_S));
            return HVD_ERR_TIMEOUT;
        }
        poll(NULL, 0, STEP_MS);
    }
}

/* A copy to host memory would wait for the stream without a limit. */
static enum hvd_status wait_for_stream(const struct nccl_comm *comm, int64_t limit_ns,
                                       struct error *err)
{
    struct gpu_mark *mark = gpu_mark(comm->setup.gpu, comm->stream, err);
    enum hvd_status status =
        mark == NULL ? HVD_ERR_ENGINE : wait_for_mark(comm, mark, limit_ns, err);
    gpu_mark_release(mark);
    return status;
}

/* A rank that has joined gives zeros. */
static enum hvd_status take(const struct nccl_comm *comm, const struct part *part, char *to,
                            struct error *err)
{
    const struct request *request = &part->request;
    const struct submission *submission = part->token;
    size_t bytes = request_bytes(request);
    if (bytes == 0)
        return HVD_OK;
    if (submission == NULL) {
        memset(to, 0, bytes);
        return HVD_OK;
    }
    int result = comm->setup.gpu->cuda->copy_to_host(to, cuda_address(submission->input), bytes,
                                                     comm->stream);
    enum hvd_status status = nccl_comm_cuda(comm, result, "cuMemcpyDtoHAsync", err);
    if (status == HVD_OK)
        scale_copy(request->type, to, to, request_elements(request), request->prescale);
    return status;
}

static enum hvd_status give(const struct runner *runner, const struct nccl_comm *comm,
                            const struct part *part, char *from, struct error *err)
{
    const struct request *request = &part->request;
    const struct submission *submission = part->token;
    size_t bytes = request_bytes(request);
    if (submission == NULL || bytes == 0)
        return HVD_OK;
    scale_copy(request->type, from, from, request_elements(request),
               runner_postscale(runner, request));
    int result = comm->setup.gpu->cuda->copy_to_device(cuda_address(submission->output), from,
                                                       bytes, comm->stream);
    return nccl_comm_cuda(comm, result, "cuMemcpyHtoDAsync", err);
}

enum hvd_status gpu_stage_run(struct runner *runner, const struct nccl_comm *comm,
                              const struct part *parts, size_t count, int64_t limit_ns,
                              struct error *err)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += request_bytes(&parts[i].request);
    if (bytes == 0)
        return HVD_OK;
    enum hvd_status status = wait_for_stream(comm, limit_ns, err);
    if (status == HVD_OK)
        status = runner_reserve(runner, bytes, err);
    char *at = runner->buffer;
    for (size_t i = 0; i < count && status == HVD_OK; at += request_bytes(&parts[i++].request))
        status = take(comm, &parts[i], at, err);
    if (status == HVD_OK)
        status = runner_called(runner, runner_adasum(runner, parts, count, runner->buffer, err));
    at = runner->buffer;
    for (size_t i = 0; i < count && status == HVD_OK; at += request_bytes(&parts[i++].request))
        status = give(runner, comm, &parts[i], at, err);
    return status;
}
