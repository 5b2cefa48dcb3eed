/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/gloo/operations.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "engine/messages.h"
#include "engine/reduce.h"

static reduce_function *find(enum hvd_type type, enum hvd_op op, struct error *err)
{
    reduce_function *reduce = reduce_find(type, op);
    if (reduce == NULL)
        error_set(err, "the engine 'gloo' does not have this type or operation");
    return reduce;
}

enum hvd_status gloo_allreduce(struct engine_comm *comm, void *data, size_t count,
                               enum hvd_type type, enum hvd_op op, struct error *err)
{
    reduce_function *reduce = find(type, op, err);
    if (reduce == NULL)
        return HVD_ERR_UNSUPPORTED;
    return mesh_allreduce(comm->mesh, data, count, hvd_type_bytes((int)type), reduce,
                          comm->timeout_ms, err);
}

enum hvd_status gloo_allgatherv(struct engine_comm *comm, const void *in, void *out,
                                const size_t *bytes, struct error *err)
{
    return mesh_allgatherv(comm->mesh, in, out, bytes, err);
}

enum hvd_status gloo_broadcast(struct engine_comm *comm, void *data, size_t bytes, int root,
                               struct error *err)
{
    return mesh_broadcast(comm->mesh, data, bytes, root, comm->timeout_ms, err);
}

enum hvd_status gloo_alltoallv(struct engine_comm *comm, const void *in, const size_t *send_bytes,
                               void *out, const size_t *receive_bytes, struct error *err)
{
    return mesh_alltoallv(comm->mesh, in, send_bytes, out, receive_bytes, err);
}

/* Each rank receives its part from all others: as many bytes travel as in any other algorithm. The
 * parts are combined in the order of ranks, so the result does not depend on who was faster. */
enum hvd_status gloo_reducescatter(struct engine_comm *comm, const void *in, void *out,
                                   const size_t *counts, enum hvd_type type, enum hvd_op op,
                                   struct error *err)
{
    reduce_function *reduce = find(type, op, err);
    if (reduce == NULL)
        return HVD_ERR_UNSUPPORTED;
    size_t size = (size_t)comm->size, mine = counts[comm->rank], bytes = hvd_type_bytes((int)type);
    size_t *send AUTO_FREE = mem_array(size, sizeof *send);
    size_t *receive AUTO_FREE = mem_array(size, sizeof *receive);
    char *parts AUTO_FREE = calloc(size, mine > 0 ? mine * bytes : 1); /* as large as the input */
    if (parts == NULL) {
        error_set(err, "there is not enough memory for %zu bytes", size * mine * bytes);
        return HVD_ERR_MEMORY;
    }
    for (size_t i = 0; i < size; i++) {
        send[i] = counts[i] * bytes;
        receive[i] = mine * bytes;
    }
    enum hvd_status status = mesh_alltoallv(comm->mesh, in, send, parts, receive, err);
    if (status != HVD_OK || mine == 0)
        return status;
    memcpy(out, parts, mine * bytes);
    for (size_t i = 1; i < size; i++)
        reduce(out, out, parts + i * mine * bytes, mine);
    return HVD_OK;
}

enum hvd_status gloo_barrier(struct engine_comm *comm, struct error *err)
{
    return mesh_barrier(comm->mesh, err);
}

static enum hvd_status send_bytes(struct engine_comm *comm, const void *bytes, size_t length,
                                  int64_t timeout_ms, struct error *err)
{
    return mesh_send(comm->mesh, 0, bytes, length, timeout_ms, err);
}

static enum hvd_status receive_bytes(struct engine_comm *comm, void *base, size_t length,
                                     const size_t *offsets, const size_t *rooms, int64_t timeout_ms,
                                     struct error *err)
{
    return mesh_receive_all(comm->mesh, base, length, offsets, rooms, timeout_ms, err);
}

static enum hvd_status broadcast_bytes(struct engine_comm *comm, void *data, size_t bytes,
                                       int64_t timeout_ms, struct error *err)
{
    return mesh_broadcast(comm->mesh, data, bytes, 0, timeout_ms, err);
}

static const struct message_link gloo_link = {send_bytes, receive_bytes, broadcast_bytes};

enum hvd_status gloo_gather_messages(struct engine_comm *comm, const void *message, size_t length,
                                     struct buf *all, size_t *lengths, int64_t timeout_ms,
                                     struct error *err)
{
    return messages_gather(&gloo_link, comm, comm->rank, comm->size, message, length, all, lengths,
                           timeout_ms, err);
}

enum hvd_status gloo_broadcast_message(struct engine_comm *comm, struct buf *message,
                                       int64_t timeout_ms, struct error *err)
{
    return messages_broadcast(&gloo_link, comm, comm->rank, message, timeout_ms, err);
}

static void and_function(void *out, const void *a, const void *b, size_t count)
{
    uint64_t *to = out;
    const uint64_t *from = a, *other = b;
    for (size_t i = 0; i < count; i++)
        to[i] = from[i] & other[i];
}

enum hvd_status gloo_and_words(struct engine_comm *comm, uint64_t *words, size_t count,
                               int64_t timeout_ms, struct error *err)
{
    return mesh_allreduce(comm->mesh, words, count, sizeof *words, and_function, timeout_ms, err);
}
