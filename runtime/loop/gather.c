/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/runner.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/request.h"

enum { BATCH_BYTES = 64 << 20 };

void layout_init(const struct runner *runner, const struct request *request, struct layout *layout)
{
    size_t size = (size_t)runner->size, bytes = hvd_type_bytes((int)request->type);
    for (int32_t i = 1; i < request->dims; i++)
        bytes *= (size_t)request->shape[i];
    *layout = (struct layout){.row_bytes = bytes};
    layout->rows = mem_array(size, sizeof *layout->rows);
    layout->receive = mem_array(2 * size, sizeof *layout->receive);
    layout->send = layout->receive + size;
}

void layout_destroy(const struct runner *runner, struct layout *layout)
{
    free(layout->receive);
    if (layout->rows_given)
        runner_free(runner, layout->rows);
    else
        free(layout->rows);
    runner_free(runner, layout->data);
}

/* Computes the rest from the rows. */
static enum hvd_status layout_measure(const struct runner *runner, struct layout *layout,
                                      struct error *err)
{
    for (int i = 0; i < runner->size; i++) {
        size_t rows = (size_t)layout->rows[i];
        if (layout->rows[i] < 0 ||
            __builtin_mul_overflow(rows, layout->row_bytes, &layout->receive[i]) ||
            __builtin_add_overflow(layout->total, layout->receive[i], &layout->total)) {
            error_set(err, "rank %d announces %lld rows", runner->ranks[i],
                      (long long)layout->rows[i]);
            return HVD_ERR_MEMORY;
        }
        layout->total_rows += layout->rows[i];
    }
    return HVD_OK;
}

static enum hvd_status layout_allocate(struct layout *layout, struct error *err)
{
    layout->data = layout->total == 0 ? NULL : malloc(layout->total);
    if (layout->total == 0 || layout->data != NULL)
        return HVD_OK;
    error_set(err, "there is not enough memory for a result of %zu bytes", layout->total);
    return HVD_ERR_MEMORY;
}

void layout_give(const struct runner *runner, struct layout *layout, struct outcome *outcome)
{
    outcome->data = layout->data;
    outcome->rows = layout->total_rows;
    outcome->splits = layout->rows;
    outcome->split_count = runner->size;
    layout->data = NULL;
    layout->rows = NULL;
}

/* ---- Alltoall -------------------------------------------------------------------------------- */

static int64_t rows_for(const struct runner *runner, const struct part *part, int rank)
{
    const struct submission *submission = part->token;
    if (part->request.kind == KIND_ALLGATHER)
        return part->request.shape[0];
    return submission->splits == NULL ? part->request.shape[0] / runner->size
                                      : submission->splits[rank];
}

enum hvd_status layout_exchange(struct runner *runner, const struct part *part,
                                struct layout *layout, struct error *err)
{
    size_t size = (size_t)runner->size;
    int64_t *rows = mem_array(size, sizeof *rows);
    size_t *bytes AUTO_FREE = mem_array(size, sizeof *bytes);
    layout->rows_given = true;
    for (size_t i = 0; i < size; i++) {
        rows[i] = rows_for(runner, part, (int)i);
        bytes[i] = sizeof *rows;
        layout->send[i] = (size_t)rows[i] * layout->row_bytes;
    }
    enum hvd_status status = runner_called(
        runner, runner->engine->alltoallv(runner->comm, rows, bytes, layout->rows, bytes, 0, err));
    runner_free(runner, rows);
    return status == HVD_OK ? layout_measure(runner, layout, err) : status;
}

enum hvd_status alltoall_run(struct runner *runner, const struct part *part,
                             struct outcome *outcome, struct error *err)
{
    const struct submission *submission = part->token;
    struct layout layout;
    layout_init(runner, &part->request, &layout);
    enum hvd_status status = layout_exchange(runner, part, &layout, err);
    if (status == HVD_OK)
        status = layout_allocate(&layout, err);
    if (status == HVD_OK) {
        runner_activity(runner, TRACE_ACTIVITY_BEGIN, part, 1, "ALLTOALL");
        status = runner_called(runner, runner->engine->alltoallv(runner->comm, submission->input,
                                                                 layout.send, layout.data,
                                                                 layout.receive, 0, err));
        runner_activity(runner, TRACE_ACTIVITY_END, part, 1, "ALLTOALL");
    }
    if (status == HVD_OK)
        layout_give(runner, &layout, outcome);
    layout_destroy(runner, &layout);
    return status;
}

/* ---- Allgather ------------------------------------------------------------------------------- */

/*
 * First, all ranks learn how many rows of each tensor the others have: one small operation for all
 * of the tensors. Then the data follows. In the fusion buffer the rows of set rank 0 come first,
 * those of all tensors, then the rows of set rank 1, and so on.
 *
 * The core has fused the tensors by the sizes that one rank knew. Now the real ones are known. So a
 * large tensor moves alone, without a copy, and the others move in batches. All ranks compute the
 * same batches.
 */

/* One call of gather_run(). */
struct gather {
    struct runner *runner;
    const struct part *parts;
    struct layout *layouts;
    size_t count;
};

static enum hvd_status exchange_rows(struct gather *gather, struct error *err)
{
    struct runner *runner = gather->runner;
    size_t size = (size_t)runner->size, own = (size_t)runner->rank * gather->count;
    int64_t *rows = mem_array(size * gather->count, sizeof *rows);
    size_t *bytes AUTO_FREE = mem_array(size, sizeof *bytes);
    for (size_t rank = 0; rank < size; rank++)
        bytes[rank] = gather->count * sizeof *rows;
    for (size_t i = 0; i < gather->count; i++)
        rows[own + i] = gather->parts[i].request.shape[0];
    enum hvd_status status = runner_called(
        runner, runner->engine->allgatherv(runner->comm, &rows[own], rows, bytes, err));
    for (size_t i = 0; i < gather->count && status == HVD_OK; i++) {
        for (size_t rank = 0; rank < size; rank++)
            gather->layouts[i].rows[rank] = rows[rank * gather->count + i];
        status = layout_measure(runner, &gather->layouts[i], err);
        if (status == HVD_OK)
            status = layout_allocate(&gather->layouts[i], err);
    }
    runner_free(runner, rows);
    return status;
}

static enum hvd_status move(const struct gather *gather, size_t first, size_t count, const void *in,
                            void *out, const size_t *bytes, struct error *err)
{
    struct runner *runner = gather->runner;
    runner_activity(runner, TRACE_ACTIVITY_BEGIN, &gather->parts[first], count, "ALLGATHER");
    enum hvd_status status =
        runner_called(runner, runner->engine->allgatherv(runner->comm, in, out, bytes, err));
    runner_activity(runner, TRACE_ACTIVITY_END, &gather->parts[first], count, "ALLGATHER");
    return status;
}

static enum hvd_status move_one(const struct gather *gather, size_t i, struct error *err)
{
    const struct submission *submission = gather->parts[i].token;
    const struct layout *layout = &gather->layouts[i];
    if (layout->total == 0)
        return HVD_OK;
    return move(gather, i, 1, submission->input, layout->data, layout->receive, err);
}

/* This rank's rows go where the engine expects them. */
static void *copy_in(const struct gather *gather, size_t first, size_t count, const size_t *bytes)
{
    char *own = gather->runner->buffer, *at;
    for (int rank = 0; rank < gather->runner->rank; rank++)
        own += bytes[rank];
    at = own;
    for (size_t i = first; i < first + count; i++) {
        const struct submission *submission = gather->parts[i].token;
        size_t length = gather->layouts[i].receive[gather->runner->rank];
        if (length > 0)
            memcpy(at, submission->input, length);
        at += length;
    }
    return own;
}

static void copy_out(const struct gather *gather, size_t first, size_t count)
{
    const char *at = gather->runner->buffer;
    size_t *filled AUTO_FREE = mem_array(count, sizeof *filled);
    for (int rank = 0; rank < gather->runner->size; rank++)
        for (size_t i = 0; i < count; i++) {
            const struct layout *layout = &gather->layouts[first + i];
            size_t length = layout->receive[rank];
            if (length > 0)
                memcpy((char *)layout->data + filled[i], at, length);
            filled[i] += length;
            at += length;
        }
}

static enum hvd_status move_batch(const struct gather *gather, size_t first, size_t count,
                                  size_t total, struct error *err)
{
    struct runner *runner = gather->runner;
    const struct part *parts = &gather->parts[first];
    size_t *bytes AUTO_FREE = mem_array((size_t)runner->size, sizeof *bytes);
    for (int rank = 0; rank < runner->size; rank++)
        for (size_t i = first; i < first + count; i++)
            bytes[rank] += gather->layouts[i].receive[rank];
    enum hvd_status status = runner_reserve(runner, total, err);
    if (status != HVD_OK || total == 0)
        return status;
    runner_trace_all(runner, TRACE_ACTIVITY_BEGIN, parts, count, "MEMCPY_IN_FUSION_BUFFER");
    const void *own = copy_in(gather, first, count, bytes);
    runner_trace_all(runner, TRACE_ACTIVITY_END, parts, count, "MEMCPY_IN_FUSION_BUFFER");
    status = move(gather, first, count, own, runner->buffer, bytes, err);
    if (status != HVD_OK)
        return status;
    runner_trace_all(runner, TRACE_ACTIVITY_BEGIN, parts, count, "MEMCPY_OUT_FUSION_BUFFER");
    copy_out(gather, first, count);
    runner_trace_all(runner, TRACE_ACTIVITY_END, parts, count, "MEMCPY_OUT_FUSION_BUFFER");
    return HVD_OK;
}

/* Neighbours that are small form a batch. */
static enum hvd_status move_all(const struct gather *gather, struct error *err)
{
    enum hvd_status status = HVD_OK;
    for (size_t first = 0; first < gather->count && status == HVD_OK;) {
        size_t count = 0, total = 0;
        while (first + count < gather->count &&
               gather->layouts[first + count].total <= FUSION_ALONE &&
               total + gather->layouts[first + count].total <= BATCH_BYTES)
            total += gather->layouts[first + count++].total;
        status =
            count > 1 ? move_batch(gather, first, count, total, err) : move_one(gather, first, err);
        first += count > 1 ? count : 1;
    }
    return status;
}

enum hvd_status gather_run(struct runner *runner, const struct part *parts, size_t count,
                           struct outcome *outcomes, struct error *err)
{
    struct layout *layouts AUTO_FREE = mem_array(count, sizeof *layouts);
    struct gather gather = {runner, parts, layouts, count};
    for (size_t i = 0; i < count; i++)
        layout_init(runner, &parts[i].request, &layouts[i]);
    enum hvd_status status = exchange_rows(&gather, err);
    if (status == HVD_OK)
        status = move_all(&gather, err);
    for (size_t i = 0; i < count; i++) {
        if (status == HVD_OK)
            layout_give(runner, &layouts[i], &outcomes[i]);
        layout_destroy(runner, &layouts[i]);
    }
    return status;
}
