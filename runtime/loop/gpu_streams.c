/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/gpu_streams.h"

static enum hvd_status wait_for(const struct nccl_comm *comm, void *stream,
                                const struct gpu_mark *mark, struct error *err)
{
    return nccl_comm_cuda(comm, comm->setup.gpu->cuda->stream_wait(stream, mark->event, 0),
                          "cuStreamWaitEvent", err);
}

/* False: it is of a stream that has no place. */
static bool keep_last(struct gpu_streams *streams, const struct gpu_mark *mark)
{
    size_t i = 0;
    if (mark->stream == CUDA_STREAM_PER_THREAD)
        return false;
    while (i < streams->count && streams->marks[i]->stream != mark->stream)
        i++;
    if (i == GPU_STREAMS_MAX)
        return false;
    if (i == streams->count || streams->marks[i]->number < mark->number)
        streams->marks[i] = mark;
    streams->count += i == streams->count ? 1 : 0;
    return true;
}

enum hvd_status gpu_streams_wait(struct gpu_streams *streams, const struct nccl_comm *comm,
                                 const struct part *parts, size_t count, struct error *err)
{
    enum hvd_status status = HVD_OK;
    *streams = (struct gpu_streams){.all = true};
    for (size_t i = 0; i < count && status == HVD_OK; i++) {
        const struct submission *submission = parts[i].token;
        if (submission == NULL || submission->ready == NULL ||
            keep_last(streams, submission->ready))
            continue;
        streams->all = false;
        status = wait_for(comm, comm->stream, submission->ready, err);
    }
    for (size_t i = 0; i < streams->count && status == HVD_OK; i++)
        status = wait_for(comm, comm->stream, streams->marks[i], err);
    return status;
}

enum hvd_status gpu_streams_hold(const struct gpu_streams *streams, const struct nccl_comm *comm,
                                 const struct gpu_mark *end, struct error *err)
{
    enum hvd_status status = HVD_OK;
    for (size_t i = 0; i < streams->count && status == HVD_OK; i++)
        status = wait_for(comm, streams->marks[i]->stream, end, err);
    return status;
}
