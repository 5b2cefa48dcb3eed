/* SPDX-License-Identifier: Apache-2.0 */
/* A communicator of the engine gloo, and its operations: see engine/engine.h for each. */
#pragma once

#include "engine/engine.h"
#include "engine/gloo/shim.h"

struct engine_comm {
    struct engine_world *world; /* NULL: not in its list */
    struct engine_comm *next;
    struct mesh *mesh;
    int rank, size; /* in the set */
    int64_t timeout_ms;
};

enum hvd_status gloo_allreduce(struct engine_comm *comm, void *data, size_t count,
                               enum hvd_type type, enum hvd_op op, struct error *err);
enum hvd_status gloo_allgatherv(struct engine_comm *comm, const void *in, void *out,
                                const size_t *bytes, struct error *err);
enum hvd_status gloo_broadcast(struct engine_comm *comm, void *data, size_t bytes, int root,
                               struct error *err);
enum hvd_status gloo_alltoallv(struct engine_comm *comm, const void *in, const size_t *send_bytes,
                               void *out, const size_t *receive_bytes, struct error *err);
enum hvd_status gloo_reducescatter(struct engine_comm *comm, const void *in, void *out,
                                   const size_t *counts, enum hvd_type type, enum hvd_op op,
                                   struct error *err);
enum hvd_status gloo_barrier(struct engine_comm *comm, struct error *err);
enum hvd_status gloo_gather_messages(struct engine_comm *comm, const void *message, size_t length,
                                     struct buf *all, size_t *lengths, int64_t timeout_ms,
                                     struct error *err);
enum hvd_status gloo_broadcast_message(struct engine_comm *comm, struct buf *message,
                                       int64_t timeout_ms, struct error *err);
enum hvd_status gloo_and_words(struct engine_comm *comm, uint64_t *words, size_t count,
                               int64_t timeout_ms, struct error *err);
