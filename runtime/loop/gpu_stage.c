/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/gpu_stage.h"

#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "engine/scale.h"
#include "loop/adasum_parts.h"

enum { STEP_MS = 1 };
#define NS_PER_S 1000000000

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
        status = runner_called(runner, adasum_parts(runner, parts, count, runner->buffer, err));
    at = runner->buffer;
    for (size_t i = 0; i < count && status == HVD_OK; at += request_bytes(&parts[i++].request))
        status = give(runner, comm, &parts[i], at, err);
    return status;
}
