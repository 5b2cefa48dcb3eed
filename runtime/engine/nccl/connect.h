/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes and ends communicators of NCCL without waiting for longer than the caller can.
 *
 * A communicator of NCCL that does not block starts a thread for each operation (since 2.22), which
 * takes longer than the operation. So libhvd's communicators block. ncclCommInitRank() then returns
 * only when all ranks have called it, and nothing can end it. It runs in a thread of its own, which
 * the caller gives up if a rank does not come. What such a thread still makes, it ends itself.
 */
#pragma once

#include "engine/nccl/gpus.h"
#include "engine/nccl/library.h"

struct nccl_setup {
    struct gpu *gpu;
    const struct nccl *nccl;
    struct nccl_id id; /* of set rank 0 */
    int rank, size;
    int64_t timeout_ms;
    bool (*stop)(void *context); /* true: do not wait any more */
    void *context;
};

/* All members call it. HVD_ERR_PEER_LOST: it took too long, or `stop` said so. HVD_ERR_ENGINE: NCCL
 * failed. */
enum hvd_status nccl_connect(const struct nccl_setup *setup, void **handle, struct error *err);

/* ncclCommAbort() in a thread of its own: it stops the operations at once, and takes longer for the
 * rest. */
struct nccl_abort;
struct nccl_abort *nccl_abort_begin(const struct nccl *nccl, const struct gpu *gpu, void *handle);
bool nccl_abort_is_done(struct nccl_abort *abort);
void nccl_abort_end(struct nccl_abort *abort); /* waits for it; accepts NULL */
