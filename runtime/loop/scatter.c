/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each rank gets its rows of each tensor. In the fusion buffer the rows for set rank 0 come first,
 * those of all tensors, then the rows for set rank 1, and so on. So the engine sees one tensor.
 * Behind them the buffer has room for the rows of this rank.
 *
 * A tensor that runs alone is copied only if it must be scaled before, or if it is in place.
 */
#include "loop/scatter.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "engine/scale.h"

/* Elements of the part of a set rank, and where they begin: the first ranks get one row more. */
struct slice {
    size_t first, count;
};

static struct slice slice_of(const struct runner *runner, const struct request *request, int rank)
{
    size_t size = (size_t)runner->size, rows = (size_t)request->shape[0], at = (size_t)rank;
    size_t row = rows == 0 ? 0 : request_elements(request) / rows;
    size_t more = rows % size;
    return (struct slice){(rows / size * at + (at < more ? at : more)) * row,
                          (rows / size + (at < more ? 1 : 0)) * row};
}

static size_t count_all(const struct runner *runner, const struct part *parts, size_t count,
                        size_t *counts)
{
    size_t total = 0;
    for (int rank = 0; rank < runner->size; rank++)
        for (size_t i = 0; i < count; i++)
            counts[rank] += slice_of(runner, &parts[i].request, rank).count;
    for (int rank = 0; rank < runner->size; rank++)
        total += counts[rank];
    return total;
}

static const char *bytes_at(const void *data, enum hvd_type type, size_t element)
{
    return data == NULL ? NULL : (const char *)data + element * hvd_type_bytes((int)type);
}

static void copy_in(const struct runner *runner, const struct part *parts, size_t count)
{
    enum hvd_type type = parts[0].request.type;
    char *at = runner->buffer;
    for (int rank = 0; rank < runner->size; rank++)
        for (size_t i = 0; i < count; i++) {
            const struct submission *submission = parts[i].token;
            struct slice slice = slice_of(runner, &parts[i].request, rank);
            scale_copy(type, at, bytes_at(submission->input, type, slice.first), slice.count,
                       parts[i].request.prescale);
            at += slice.count * hvd_type_bytes((int)type);
        }
}

static void copy_out(const struct runner *runner, const struct part *parts, size_t count,
                     const char *at)
{
    for (size_t i = 0; i < count; i++) {
        const struct request *request = &parts[i].request;
        const struct submission *submission = parts[i].token;
        struct slice own = slice_of(runner, request, runner->rank);
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
    const double one = 1;
    return memcmp(&part->request.prescale, &one, sizeof one) == 0 &&
           submission->output != submission->input;
}

enum hvd_status scatter_run(struct runner *runner, const struct part *parts, size_t count,
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
    copy_in(runner, parts, count);
    runner_trace_all(runner, TRACE_ACTIVITY_END, parts, count, "MEMCPY_IN_FUSION_BUFFER");
    status = scatter(runner, parts, count, runner->buffer, output, counts, err);
    if (status != HVD_OK)
        return status;
    runner_trace_all(runner, TRACE_ACTIVITY_BEGIN, parts, count, "MEMCPY_OUT_FUSION_BUFFER");
    copy_out(runner, parts, count, output);
    runner_trace_all(runner, TRACE_ACTIVITY_END, parts, count, "MEMCPY_OUT_FUSION_BUFFER");
    return HVD_OK;
}
