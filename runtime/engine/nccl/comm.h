/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A communicator of NCCL: a process set on one GPU of each member.
 *
 * It has a stream of its own, in which its operations run one after the other. Its one buffer grows
 * in the order of that stream. One thread uses it, within gpu_enter().
 */
#pragma once

#include "engine/nccl/gpus.h"
#include "engine/nccl/libraries.h"

struct nccl_setup {
    struct gpu *gpu;
    const struct nccl *nccl;
    struct nccl_id id; /* of set rank 0 */
    int rank, size;
    int64_t timeout_ms;
    bool (*stop)(void *context); /* true: do not wait any more */
    void *context;
};

struct nccl_comm {
    struct nccl_setup setup;
    void *handle; /* ncclComm_t */
    void *alone;  /* of this rank only, for passes that scale; NULL: not needed yet */
    void *stream;
    void *bells; /* another stream, whose calls into this process do not delay the first one */
    cuda_pointer buffer;
    size_t room;
    struct nccl_abort *abort; /* NULL: not begun */
};

/* All members call it. HVD_ERR_ENGINE: CUDA or NCCL failed. HVD_ERR_PEER_LOST: it took too long, or
 * `stop` said so. */
enum hvd_status nccl_comm_create(const struct nccl_setup *setup, struct nccl_comm **comm,
                                 struct error *err);
/* Begins to stop what runs on the GPU, without waiting for other ranks: they should be at rest,
 * too. After that, the events in the stream are complete as soon as the kernels have stopped. */
void nccl_comm_abort(struct nccl_comm *comm);
bool nccl_comm_is_aborted(const struct nccl_comm *comm);
/* Aborts it, if that was not done, and waits for the end of that. */
void nccl_comm_destroy(struct nccl_comm *comm);

/* What a call of NCCL has returned. */
enum hvd_status nccl_comm_result(const struct nccl_comm *comm, void *handle, int result,
                                 const char *what, struct error *err);
enum hvd_status nccl_comm_cuda(const struct nccl_comm *comm, int result, const char *what,
                               struct error *err);
/* What has happened since: HVD_OK, or HVD_ERR_PEER_LOST or HVD_ERR_ENGINE. */
enum hvd_status nccl_comm_state(const struct nccl_comm *comm, struct error *err);

/* Makes `comm->alone`. */
enum hvd_status nccl_comm_need_alone(struct nccl_comm *comm, struct error *err);
/* Makes the buffer as large. What runs in the stream may go on to use the old one. */
enum hvd_status nccl_comm_reserve(struct nccl_comm *comm, size_t bytes, struct error *err);
