/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/broadcast.h"

#include <string.h>

static int set_rank_of(const struct runner *runner, int global)
{
    for (int i = 0; i < runner->size; i++)
        if (runner->ranks[i] == global)
            return i;
    return 0; /* the root was checked when it was submitted */
}

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

enum hvd_status broadcast_run(struct runner *runner, const struct part *parts, size_t count,
                              struct error *err)
{
    int root = set_rank_of(runner, parts[0].request.root);
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
