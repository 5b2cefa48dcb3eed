/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/moves.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Sizes that all members have exchanged, and the memory for what they announce. */
struct layout {
    int64_t *rows;          /* from each member; goes to the outcome */
    size_t *send, *receive; /* bytes */
    size_t row_bytes, total;
    int64_t total_rows;
    void *data;
};

static void layout_destroy(struct layout *layout)
{
    free(layout->rows);
    free(layout->send);
    free(layout->receive);
    free(layout->data);
}

static size_t row_bytes(const struct request *request)
{
    size_t bytes = hvd_type_bytes((int)request->type);
    for (int32_t i = 1; i < request->dims; i++)
        bytes *= (size_t)request->shape[i];
    return bytes;
}

/* -1: what the others announce cannot be right, or does not fit the memory. */
static int measure(const struct runner *runner, struct layout *layout, struct error *err)
{
    for (int i = 0; i < runner->size; i++) {
        size_t rows = (size_t)layout->rows[i];
        if (layout->rows[i] < 0 ||
            __builtin_mul_overflow(rows, layout->row_bytes, &layout->receive[i]) ||
            __builtin_add_overflow(layout->total, layout->receive[i], &layout->total))
            return error_set(err, "rank %d announces %lld rows", runner->ranks[i],
                             (long long)layout->rows[i]);
        layout->total_rows += layout->rows[i];
    }
    layout->data = layout->total == 0 ? NULL : malloc(layout->total);
    if (layout->total > 0 && layout->data == NULL)
        return error_set(err, "there is not enough memory for a result of %zu bytes",
                         layout->total);
    return 0;
}

static void layout_init(const struct runner *runner, const struct request *request,
                        struct layout *layout)
{
    size_t size = (size_t)runner->size;
    *layout = (struct layout){.row_bytes = row_bytes(request)};
    layout->rows = mem_array(size, sizeof *layout->rows);
    layout->send = mem_array(size, sizeof *layout->send);
    layout->receive = mem_array(size, sizeof *layout->receive);
}

/* The result goes to the program, with the rows from each rank. */
static void give(const struct runner *runner, struct layout *layout, struct outcome *outcome)
{
    outcome->data = layout->data;
    outcome->rows = layout->total_rows;
    outcome->splits = layout->rows;
    outcome->split_count = runner->size;
    layout->data = NULL;
    layout->rows = NULL;
}

enum hvd_status move_allgather(struct runner *runner, const struct part *part,
                               struct outcome *outcome, struct error *err)
{
    const struct request *request = &part->request;
    const struct submission *submission = part->token;
    struct layout layout;
    layout_init(runner, request, &layout);
    for (int i = 0; i < runner->size; i++)
        layout.receive[i] = sizeof *layout.rows;
    layout.rows[runner->rank] = request->shape[0];
    enum hvd_status status = runner->engine->allgatherv(runner->comm, &layout.rows[runner->rank],
                                                        layout.rows, layout.receive, err);
    if (status == HVD_OK && measure(runner, &layout, err) != 0)
        status = HVD_ERR_MEMORY;
    if (status == HVD_OK && layout.total > 0) {
        runner_activity(runner, TRACE_ACTIVITY_BEGIN, request, "ALLGATHER");
        status = runner->engine->allgatherv(runner->comm, submission->input, layout.data,
                                            layout.receive, err);
        runner_activity(runner, TRACE_ACTIVITY_END, request, "ALLGATHER");
    }
    if (status == HVD_OK)
        give(runner, &layout, outcome);
    layout_destroy(&layout);
    return status;
}

static int64_t rows_for(const struct runner *runner, const struct part *part, int rank)
{
    const struct submission *submission = part->token;
    return submission->splits == NULL ? part->request.shape[0] / runner->size
                                      : submission->splits[rank];
}

/* All members learn how many rows they get from each. */
static enum hvd_status exchange_rows(struct runner *runner, const struct part *part,
                                     struct layout *layout, struct error *err)
{
    size_t size = (size_t)runner->size;
    int64_t *rows AUTO_FREE = mem_array(size, sizeof *rows);
    size_t *bytes AUTO_FREE = mem_array(size, sizeof *bytes);
    for (size_t i = 0; i < size; i++) {
        rows[i] = rows_for(runner, part, (int)i);
        bytes[i] = sizeof *rows;
        layout->send[i] = (size_t)rows[i] * layout->row_bytes;
    }
    return runner->engine->alltoallv(runner->comm, rows, bytes, layout->rows, bytes, err);
}

enum hvd_status move_alltoall(struct runner *runner, const struct part *part,
                              struct outcome *outcome, struct error *err)
{
    const struct request *request = &part->request;
    const struct submission *submission = part->token;
    struct layout layout;
    layout_init(runner, request, &layout);
    enum hvd_status status = exchange_rows(runner, part, &layout, err);
    if (status == HVD_OK && measure(runner, &layout, err) != 0)
        status = HVD_ERR_MEMORY;
    if (status == HVD_OK) {
        runner_activity(runner, TRACE_ACTIVITY_BEGIN, request, "ALLTOALL");
        status = runner->engine->alltoallv(runner->comm, submission->input, layout.send,
                                           layout.data, layout.receive, err);
        runner_activity(runner, TRACE_ACTIVITY_END, request, "ALLTOALL");
    }
    if (status == HVD_OK)
        give(runner, &layout, outcome);
    layout_destroy(&layout);
    return status;
}

static int set_rank_of(const struct runner *runner, int global)
{
    for (int i = 0; i < runner->size; i++)
        if (runner->ranks[i] == global)
            return i;
    return 0; /* the root was checked when it was submitted */
}

enum hvd_status move_broadcast(struct runner *runner, const struct part *part, struct error *err)
{
    const struct request *request = &part->request;
    const struct submission *submission = part->token;
    int root = set_rank_of(runner, request->root);
    size_t bytes = request_bytes(request);
    /* The root's buffer is only read. */
    void *data = root == runner->rank ? (void *)submission->input : submission->output;
    if (bytes == 0)
        return HVD_OK;
    if (root == runner->rank && submission->output != NULL && submission->output != data)
        memcpy(submission->output, data, bytes);
    runner_activity(runner, TRACE_ACTIVITY_BEGIN, request, "BCAST");
    enum hvd_status status = runner->engine->broadcast(runner->comm, data, bytes, root, err);
    runner_activity(runner, TRACE_ACTIVITY_END, request, "BCAST");
    return status;
}
