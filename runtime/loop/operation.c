/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/runner.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/request.h"
#include "engine/elements.h"

/* ---- Allreduce ------------------------------------------------------------------------------- */

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
            ? runner_adasum(runner, parts, count, data, err)
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

/* ---- Broadcast: tensors that are fused have the same root ------------------------------------ */

static void copy(void *to, const void *from, size_t bytes)
{
    if (bytes > 0 && to != NULL && to != from)
        memcpy(to, from, bytes);
}

static enum hvd_status broadcast(struct runner *runner, const struct part *parts, size_t count,
                                 void *data, size_t bytes, int root, struct error *err)
{
    if (bytes == 0)
        return HVD_OK;
    runner_activity(runner, TRACE_ACTIVITY_BEGIN, parts, count, "BCAST");
    enum hvd_status status =
        runner_called(runner, runner->engine->broadcast(runner->comm, data, bytes, root, err));
    runner_activity(runner, TRACE_ACTIVITY_END, parts, count, "BCAST");
    return status;
}

static enum hvd_status broadcast_one(struct runner *runner, const struct part *part, int root,
                                     struct error *err)
{
    const struct submission *submission = part->token;
    size_t bytes = request_bytes(&part->request);
    bool is_root = root == runner->rank;
    /* The root's buffer is only read. */
    void *data = is_root ? (void *)submission->input : submission->output;
    if (is_root)
        copy(submission->output, data, bytes);
    return broadcast(runner, part, 1, data, bytes, root, err);
}

/* Between the buffer and the tensors: in on the root, out on the others. */
static void copy_all(const struct runner *runner, const struct part *parts, size_t count,
                     bool is_root)
{
    char *at = runner->buffer;
    for (size_t i = 0; i < count; i++) {
        const struct submission *submission = parts[i].token;
        size_t bytes = request_bytes(&parts[i].request);
        if (is_root) {
            copy(at, submission->input, bytes);
            copy(submission->output, submission->input, bytes);
        } else {
            copy(submission->output, at, bytes);
        }
        at += bytes;
    }
}

static enum hvd_status broadcast_run(struct runner *runner, const struct part *parts, size_t count,
                                     struct error *err)
{
    int root = runner_root(runner, &parts[0].request);
    bool is_root = root == runner->rank;
    size_t bytes = 0;
    if (count == 1)
        return broadcast_one(runner, parts, root, err);
    for (size_t i = 0; i < count; i++)
        bytes += request_bytes(&parts[i].request);
    enum hvd_status status = runner_reserve(runner, bytes, err);
    if (status != HVD_OK)
        return status;
    const char *what = is_root ? "MEMCPY_IN_FUSION_BUFFER" : "MEMCPY_OUT_FUSION_BUFFER";
    if (!is_root)
        status = broadcast(runner, parts, count, runner->buffer, bytes, root, err);
    if (status != HVD_OK)
        return status;
    runner_trace_all(runner, TRACE_ACTIVITY_BEGIN, parts, count, what);
    copy_all(runner, parts, count, is_root);
    runner_trace_all(runner, TRACE_ACTIVITY_END, parts, count, what);
    return is_root ? broadcast(runner, parts, count, runner->buffer, bytes, root, err) : HVD_OK;
}

/* ---- Reducescatter --------------------------------------------------------------------------- */

/*
 * Each rank gets its rows of each tensor. In the fusion buffer the rows for set rank 0 come first,
 * those of all tensors, then the rows for set rank 1, and so on. So the engine sees one tensor.
 * Behind them the buffer has room for the rows of this rank.
 *
 * A tensor that runs alone is copied only if it must be scaled before, or if it is in place.
 */

static size_t count_all(const struct runner *runner, const struct part *parts, size_t count,
                        size_t *counts)
{
    size_t total = 0;
    for (int rank = 0; rank < runner->size; rank++)
        for (size_t i = 0; i < count; i++)
            counts[rank] += request_slice(&parts[i].request, rank, runner->size).count;
    for (int rank = 0; rank < runner->size; rank++)
        total += counts[rank];
    return total;
}

static const char *bytes_at(const void *data, enum hvd_type type, size_t element)
{
    return data == NULL ? NULL : (const char *)data + element * hvd_type_bytes((int)type);
}

static void scatter_in(const struct runner *runner, const struct part *parts, size_t count)
{
    enum hvd_type type = parts[0].request.type;
    char *at = runner->buffer;
    for (int rank = 0; rank < runner->size; rank++)
        for (size_t i = 0; i < count; i++) {
            const struct submission *submission = parts[i].token;
            struct slice slice = request_slice(&parts[i].request, rank, runner->size);
            scale_copy(type, at, bytes_at(submission->input, type, slice.first), slice.count,
                       parts[i].request.prescale);
            at += slice.count * hvd_type_bytes((int)type);
        }
}

static void scatter_out(const struct runner *runner, const struct part *parts, size_t count,
                        const char *at)
{
    for (size_t i = 0; i < count; i++) {
        const struct request *request = &parts[i].request;
        const struct submission *submission = parts[i].token;
        struct slice own = request_slice(request, runner->rank, runner->size);
        scale_copy(request->type, submission->output, at, own.count,
                   runner_postscale(runner, request));
        at += own.count * hvd_type_bytes((int)request->type);
    }
}

static enum hvd_status scatter(struct runner *runner, const struct part *parts, size_t count,
                               const void *input, void *output, const size_t *counts,
                               struct error *err)
{
    const struct request *first = &parts[0].request;
    runner_activity(runner, TRACE_ACTIVITY_BEGIN, parts, count, "REDUCESCATTER");
    enum hvd_status status = runner_called(
        runner, runner->engine->reducescatter(runner->comm, input, output, counts, first->type,
                                              runner_reduction(first), err));
    runner_activity(runner, TRACE_ACTIVITY_END, parts, count, "REDUCESCATTER");
    return status;
}

/* Directly from the program's buffer into the program's buffer. */
static bool is_direct(const struct part *part)
{
    const struct submission *submission = part->token;
    return factor_is_one(part->request.prescale) && submission->output != submission->input;
}

static enum hvd_status scatter_run(struct runner *runner, const struct part *parts, size_t count,
                                   struct error *err)
{
    size_t *counts AUTO_FREE = mem_array((size_t)runner->size, sizeof *counts);
    const struct request *first = &parts[0].request;
    const struct submission *submission = parts[0].token;
    size_t total = count_all(runner, parts, count, counts), own = counts[runner->rank];
    size_t element = hvd_type_bytes((int)first->type);
    if (total == 0)
        return HVD_OK;
    if (count == 1 && is_direct(parts)) {
        enum hvd_status status =
            scatter(runner, parts, 1, submission->input, submission->output, counts, err);
        if (status == HVD_OK)
            scale_copy(first->type, submission->output, submission->output, own,
                       runner_postscale(runner, first));
        return status;
    }
    bool alone = count == 1;
    enum hvd_status status = runner_reserve(runner, (total + (alone ? 0 : own)) * element, err);
    if (status != HVD_OK)
        return status;
    char *output = alone ? submission->output : (char *)runner->buffer + total * element;
    runner_trace_all(runner, TRACE_ACTIVITY_BEGIN, parts, count, "MEMCPY_IN_FUSION_BUFFER");
    scatter_in(runner, parts, count);
    runner_trace_all(runner, TRACE_ACTIVITY_END, parts, count, "MEMCPY_IN_FUSION_BUFFER");
    status = scatter(runner, parts, count, runner->buffer, output, counts, err);
    if (status != HVD_OK)
        return status;
    runner_trace_all(runner, TRACE_ACTIVITY_BEGIN, parts, count, "MEMCPY_OUT_FUSION_BUFFER");
    scatter_out(runner, parts, count, output);
    runner_trace_all(runner, TRACE_ACTIVITY_END, parts, count, "MEMCPY_OUT_FUSION_BUFFER");
    return HVD_OK;
}

/* ---- All kinds ------------------------------------------------------------------------------- */

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
