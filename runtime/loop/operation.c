/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/operation.h"

#include <stdlib.h>
#include <string.h>

#include "engine/scale.h"
#include "loop/adasum_parts.h"
#include "loop/alltoall.h"
#include "loop/broadcast.h"
#include "loop/gather.h"
#include "loop/scatter.h"

static enum hvd_status reduce(struct runner *runner, const struct part *parts, size_t count,
                              void *data, size_t elements, struct error *err)
{
    const struct request *first = &parts[0].request;
    const char *what = first->op == HVD_ADASUM ? "ADASUM_ALLREDUCE" : "ALLREDUCE";
    if (elements == 0)
        return HVD_OK;
    runner_activity(runner, TRACE_ACTIVITY_BEGIN, parts, count, what);
    enum hvd_status status =
        first->op == HVD_ADASUM
            ? adasum_parts(runner, parts, count, data, err)
            : runner->engine->allreduce(runner->comm, data, elements, first->type,
                                        runner_reduction(first), err);
    status = runner_called(runner, status);
    runner_activity(runner, TRACE_ACTIVITY_END, parts, count, what);
    return status;
}

/* A rank that has joined gives zeros, which nobody reads. */
static enum hvd_status reduce_one(struct runner *runner, const struct part *part, struct error *err)
{
    const struct request *request = &part->request;
    const struct submission *submission = part->token;
    size_t elements = request_elements(request);
    void *data = submission == NULL ? NULL : submission->output;
    enum hvd_status status = HVD_OK;
    if (submission == NULL) {
        status = runner_reserve(runner, request_bytes(request), err);
        data = runner->buffer;
        if (status == HVD_OK && elements > 0)
            memset(data, 0, request_bytes(request));
    } else {
        scale_copy(request->type, data, submission->input, elements, request->prescale);
    }
    if (status == HVD_OK)
        status = reduce(runner, part, 1, data, elements, err);
    if (status == HVD_OK && submission != NULL)
        scale_copy(request->type, data, data, elements, runner_postscale(runner, request));
    return status;
}

static void copy_in(const struct part *parts, size_t count, char *at)
{
    for (size_t i = 0; i < count; i++) {
        const struct request *request = &parts[i].request;
        const struct submission *submission = parts[i].token;
        size_t bytes = request_bytes(request);
        if (submission == NULL && bytes > 0)
            memset(at, 0, bytes);
        else if (submission != NULL)
            scale_copy(request->type, at, submission->input, request_elements(request),
                       request->prescale);
        at += bytes;
    }
}

static void copy_out(const struct runner *runner, const struct part *parts, size_t count,
                     const char *at)
{
    for (size_t i = 0; i < count; i++) {
        const struct request *request = &parts[i].request;
        const struct submission *submission = parts[i].token;
        if (submission != NULL)
            scale_copy(request->type, submission->output, at, request_elements(request),
                       runner_postscale(runner, request));
        at += request_bytes(request);
    }
}

/* As reduce_one(), of tensors that are side by side. The copies only scale, if anything. */
static enum hvd_status reduce_flat(struct runner *runner, const struct part *parts, size_t count,
                                   char *flat, size_t elements, struct error *err)
{
    copy_in(parts, count, flat);
    enum hvd_status status = reduce(runner, parts, count, flat, elements, err);
    if (status == HVD_OK)
        copy_out(runner, parts, count, flat);
    return status;
}

/* The tensors, if they are reduced in place and are side by side: then they are as good as a fusion
 * buffer. Other ranks may have theirs elsewhere. */
static char *flat_tensors(const struct part *parts, size_t count)
{
    const struct submission *first = parts[0].token;
    const char *at = first == NULL ? NULL : first->output;
    for (size_t i = 0; i < count && at != NULL; i++) {
        const struct submission *submission = parts[i].token;
        size_t bytes = request_bytes(&parts[i].request);
        bool follows = submission != NULL &&
                       (bytes == 0 || (submission->output == at && submission->input == at));
        at = follows ? at + bytes : NULL;
    }
    return at == NULL ? NULL : first->output;
}

static enum hvd_status reduce_fused(struct runner *runner, const struct part *parts, size_t count,
                                    struct error *err)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += request_bytes(&parts[i].request);
    size_t elements = bytes / hvd_type_bytes((int)parts[0].request.type);
    char *flat = flat_tensors(parts, count);
    if (flat != NULL)
        return reduce_flat(runner, parts, count, flat, elements, err);
    enum hvd_status status = runner_reserve(runner, bytes, err);
    if (status != HVD_OK)
        return status;
    runner_trace_all(runner, TRACE_ACTIVITY_BEGIN, parts, count, "MEMCPY_IN_FUSION_BUFFER");
    copy_in(parts, count, runner->buffer);
    runner_trace_all(runner, TRACE_ACTIVITY_END, parts, count, "MEMCPY_IN_FUSION_BUFFER");
    status = reduce(runner, parts, count, runner->buffer, elements, err);
    if (status != HVD_OK)
        return status;
    runner_trace_all(runner, TRACE_ACTIVITY_BEGIN, parts, count, "MEMCPY_OUT_FUSION_BUFFER");
    copy_out(runner, parts, count, runner->buffer);
    runner_trace_all(runner, TRACE_ACTIVITY_END, parts, count, "MEMCPY_OUT_FUSION_BUFFER");
    return HVD_OK;
}

static enum hvd_status run(struct runner *runner, const struct part *parts, size_t count,
                           struct outcome *outcomes, struct error *err)
{
    switch (parts[0].request.kind) {
    case KIND_ALLREDUCE:
        return count == 1 ? reduce_one(runner, parts, err)
                          : reduce_fused(runner, parts, count, err);
    case KIND_ALLGATHER: return gather_run(runner, parts, count, outcomes, err);
    case KIND_ALLTOALL: return alltoall_run(runner, parts, outcomes, err);
    case KIND_BROADCAST: return broadcast_run(runner, parts, count, err);
    case KIND_REDUCESCATTER: return scatter_run(runner, parts, count, err);
    default: return HVD_OK; /* a barrier: all ranks have submitted it */
    }
}

enum hvd_status operation_run(struct runner *runner, const struct part *parts, size_t count,
                              struct outcome *outcomes, struct error *err)
{
    const char *kind = kind_text(parts[0].request.kind);
    runner_trace_all(runner, TRACE_OPERATION_BEGIN, parts, count, kind);
    enum hvd_status status = run(runner, parts, count, outcomes, err);
    runner_trace_all(runner, TRACE_OPERATION_END, parts, count, status == HVD_OK ? kind : NULL);
    for (size_t i = 0; i < count; i++) {
        outcomes[i].status = status;
        outcomes[i].text = status == HVD_OK ? "" : err->text;
    }
    return status;
}
