/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/nccl/comm.h"

#include <poll.h>
#include <stdlib.h>

#include "base/mem.h"

enum { STEP_MS = 1 };

enum hvd_status nccl_comm_cuda(const struct nccl_comm *comm, int result, const char *what,
                               struct error *err)
{
    if (cuda_check(comm->setup.gpu->cuda, result, what, err) == 0)
        return HVD_OK;
    return result == CUDA_ERROR_OUT_OF_MEMORY ? HVD_ERR_MEMORY : HVD_ERR_ENGINE;
}

enum hvd_status nccl_comm_result(const struct nccl_comm *comm, void *handle, int result,
                                 const char *what, struct error *err)
{
    if (nccl_check(comm->setup.nccl, result, handle, what, err) == 0)
        return HVD_OK;
    return result == NCCL_REMOTE_ERROR ? HVD_ERR_PEER_LOST : HVD_ERR_ENGINE;
}

enum hvd_status nccl_comm_state(const struct nccl_comm *comm, struct error *err)
{
    int state = NCCL_SUCCESS, result = comm->setup.nccl->state(comm->handle, &state);
    return nccl_comm_result(comm, comm->handle, result != NCCL_SUCCESS ? result : state,
                            "NCCL reports an error", err);
}

static enum hvd_status make_stream(struct nccl_comm *comm, void **stream, int priority,
                                   struct error *err)
{
    int result = comm->setup.gpu->cuda->stream_create(stream, CUDA_STREAM_NON_BLOCKING, priority);
    return nccl_comm_cuda(comm, result, "cuStreamCreateWithPriority", err);
}

enum hvd_status nccl_comm_create(const struct nccl_setup *setup, struct nccl_comm **comm,
                                 struct error *err)
{
    struct nccl_comm *made = mem_alloc(sizeof *made);
    int least = 0, greatest = 0;
    made->setup = *setup;
    enum hvd_status status =
        nccl_comm_cuda(made, setup->gpu->cuda->stream_priorities(&least, &greatest),
                       "cuCtxGetStreamPriorityRange", err);
    if (status == HVD_OK)
        status = make_stream(made, &made->stream, greatest, err);
    if (status == HVD_OK)
        status = make_stream(made, &made->bells, least, err);
    if (status == HVD_OK)
        status = nccl_connect(setup, &made->handle, err);
    if (status == HVD_OK)
        *comm = made;
    else
        nccl_comm_destroy(made, NULL);
    return status;
}

/* After an abort, the events in the stream are complete as soon as the kernels have stopped. */
static void stop(struct nccl_comm *comm, const struct nccl_rest *rest)
{
    struct nccl_abort *all = nccl_abort_begin(comm->setup.nccl, comm->setup.gpu, comm->handle);
    if (rest != NULL) {
        while (rest->busy(rest->context) && !nccl_abort_is_done(all))
            poll(NULL, 0, STEP_MS);
        rest->quiet(rest->context);
    }
    nccl_abort_end(all);
    nccl_abort_end(nccl_abort_begin(comm->setup.nccl, comm->setup.gpu, comm->alone));
}

void nccl_comm_destroy(struct nccl_comm *comm, const struct nccl_rest *rest)
{
    const struct cuda *cuda = comm->setup.gpu->cuda;
    stop(comm, rest);
    if (comm->buffer != 0)
        cuda->memory_give(comm->buffer, comm->stream);
    if (comm->stream != NULL)
        cuda->stream_destroy(comm->stream);
    if (comm->bells != NULL)
        cuda->stream_destroy(comm->bells);
    free(comm);
}

enum hvd_status nccl_comm_need_alone(struct nccl_comm *comm, struct error *err)
{
    struct nccl_setup setup = comm->setup;
    if (comm->alone != NULL)
        return HVD_OK;
    setup.rank = 0;
    setup.size = 1;
    int result = setup.nccl->get_id(&setup.id);
    enum hvd_status status = nccl_comm_result(comm, NULL, result, "ncclGetUniqueId", err);
    return status == HVD_OK ? nccl_connect(&setup, &comm->alone, err) : status;
}

enum hvd_status nccl_comm_reserve(struct nccl_comm *comm, size_t bytes, struct error *err)
{
    const struct cuda *cuda = comm->setup.gpu->cuda;
    if (bytes <= comm->room)
        return HVD_OK;
    if (comm->buffer != 0)
        cuda->memory_give(comm->buffer, comm->stream);
    comm->buffer = 0;
    comm->room = 0;
    int result = cuda->memory_take(&comm->buffer, bytes, comm->stream);
    enum hvd_status status = nccl_comm_cuda(comm, result, "cuMemAllocAsync", err);
    comm->room = status == HVD_OK ? bytes : 0;
    return status;
}
