/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data moves with MPI's blocking calls, because Open MPI is much faster with them. A world without
 * MPI_THREAD_MULTIPLE uses requests instead, as alltoallv() always does (mpi/request.h).
 *
 * MPI counts elements and offsets in int. So broadcasts and reductions of more than `piece` bytes
 * are several, and moves of more are messages from rank to rank.
 */
#include "engine/mpi/request.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { TAG_PIECE = 1 };

/* The share of a rank in one call of an allreduce. Open MPI allocates as much memory as the call
 * reduces, and malloc() asks the kernel for each large block and gives it back. So several calls of
 * a few MiB take half as long as one of 64 MiB. */
#define ALLREDUCE_SHARE ((size_t)2 << 20)

/* One request: started with the lock held, then waited for. */
#define RUN(comm, what, err, call)                                                 \
    ({                                                                             \
        MPI_Request request = MPI_REQUEST_NULL;                                    \
        request_lock((comm)->world);                                               \
        int code = (call);                                                         \
        request_unlock((comm)->world);                                             \
        enum hvd_status result = request_result(comm, code, what, err);            \
        result == HVD_OK ? request_wait(comm, &request, 1, 0, what, err) : result; \
    })

/* `blocking` is the call that `call` begins. */
#define RUN_DATA(comm, what, err, blocking, call)                      \
    ((comm)->world->one_at_a_time ? RUN(comm, "MPI_I" what, err, call) \
                                  : request_result(comm, blocking, "MPI_" what, err))

static enum hvd_status find(const struct engine_comm *comm, enum hvd_type type, enum hvd_op op,
                            MPI_Datatype *mpi_type, MPI_Op *mpi_op, struct error *err)
{
    if (mpi_types_find(&comm->world->types, type, op, mpi_type, mpi_op))
        return request_may_start(comm, err);
    error_set(err, "the engine 'mpi' does not have this type or operation");
    return HVD_ERR_UNSUPPORTED;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Elements of `bytes` in a piece of at most `limit` bytes; at least one. */
static size_t piece_of(const struct engine_comm *comm, size_t bytes, size_t limit)
{
    size_t elements = smaller(comm->world->piece, limit) / bytes;
    return elements > 0 ? elements : 1;
}

static size_t sum(const size_t *values, int count)
{
    size_t total = 0;
    for (int i = 0; i < count; i++)
        total += values[i];
    return total;
}

enum hvd_status mpi_allreduce(struct engine_comm *comm, void *data, size_t count,
                              enum hvd_type type, enum hvd_op op, struct error *err)
{
    MPI_Datatype mpi_type;
    MPI_Op mpi_op;
    enum hvd_status status = find(comm, type, op, &mpi_type, &mpi_op, err);
    size_t bytes = hvd_type_bytes((int)type), piece = 1;
    if (status == HVD_OK)
        piece = piece_of(comm, bytes, ALLREDUCE_SHARE * (size_t)comm->size);
    for (size_t at = 0; at < count && status == HVD_OK; at += piece) {
        int part = (int)smaller(piece, count - at);
        char *where = (char *)data + at * bytes;
        status = RUN_DATA(
            comm, "allreduce", err,
            MPI_Allreduce(MPI_IN_PLACE, where, part, mpi_type, mpi_op, comm->comm),
            MPI_Iallreduce(MPI_IN_PLACE, where, part, mpi_type, mpi_op, comm->comm, &request));
    }
    return status;
}

enum hvd_status mpi_broadcast(struct engine_comm *comm, void *data, size_t bytes, int root,
                              struct error *err)
{
    enum hvd_status status = request_may_start(comm, err);
    for (size_t at = 0; at < bytes && status == HVD_OK; at += comm->world->piece) {
        int part = (int)smaller(comm->world->piece, bytes - at);
        char *where = (char *)data + at;
        status = RUN_DATA(comm, "bcast", err, MPI_Bcast(where, part, MPI_BYTE, root, comm->comm),
                          MPI_Ibcast(where, part, MPI_BYTE, root, comm->comm, &request));
    }
    return status;
}

/* Receives, or sends, in pieces to or from one rank. */
struct transfer {
    char *at;
    size_t bytes;
    int peer;
    bool receive;
};

static int requests_of(const struct engine_comm *comm, const struct transfer *transfer)
{
    return (int)((transfer->bytes + comm->world->piece - 1) / comm->world->piece);
}

static int begin_transfer(struct engine_comm *comm, const struct transfer *one,
                          MPI_Request *requests, int *count)
{
    int code = MPI_SUCCESS;
    for (size_t at = 0; at < one->bytes && code == MPI_SUCCESS; at += comm->world->piece) {
        int part = (int)smaller(comm->world->piece, one->bytes - at);
        MPI_Request *request = &requests[(*count)++];
        code = one->receive ? MPI_Irecv(one->at + at, part, MPI_BYTE, one->peer, TAG_PIECE,
                                        comm->comm, request)
                            : MPI_Isend(one->at + at, part, MPI_BYTE, one->peer, TAG_PIECE,
                                        comm->comm, request);
    }
    return code;
}

static enum hvd_status run_transfers(struct engine_comm *comm, const struct transfer *transfers,
                                     int count, int64_t timeout_ms, struct error *err)
{
    int total = 0, started = 0, code = MPI_SUCCESS;
    for (int i = 0; i < count; i++)
        total += requests_of(comm, &transfers[i]);
    MPI_Request *requests = mem_array((size_t)total, sizeof(MPI_Request));
    request_lock(comm->world);
    for (int i = 0; i < count && code == MPI_SUCCESS; i++)
        code = begin_transfer(comm, &transfers[i], requests, &started);
    request_unlock(comm->world);
    enum hvd_status status = request_result(comm, code, "MPI_Isend", err);
    if (status == HVD_OK)
        status = request_wait(comm, requests, started, timeout_ms, "MPI_Isend", err);
    free(requests); /* also if they are not complete: MPI does not use this array later */
    return status;
}

/* Each rank sends send[i] bytes to rank i from in + send_at[i], and receives in the same way. */
static enum hvd_status move(struct engine_comm *comm, char *in, const size_t *send,
                            const size_t *send_at, char *out, const size_t *receive,
                            const size_t *receive_at, int64_t timeout_ms, struct error *err)
{
    int size = comm->size, own = comm->rank;
    struct transfer *transfers AUTO_FREE = mem_array(2 * (size_t)size, sizeof *transfers);
    for (int i = 0; i < size; i++) {
        size_t bytes_out = i == own ? 0 : send[i], bytes_in = i == own ? 0 : receive[i];
        transfers[i] = (struct transfer){out + receive_at[i], bytes_in, i, true};
        transfers[size + i] = (struct transfer){in + send_at[i], bytes_out, i, false};
    }
    if (receive[own] > 0 && out + receive_at[own] != in + send_at[own])
        memcpy(out + receive_at[own], in + send_at[own], receive[own]);
    return run_transfers(comm, transfers, 2 * size, timeout_ms, err);
}

static size_t *offsets_new(const size_t *sizes, int count)
{
    size_t *offsets = mem_array((size_t)count, sizeof *offsets);
    for (int i = 1; i < count; i++)
        offsets[i] = offsets[i - 1] + sizes[i - 1];
    return offsets;
}

static int *ints_new(const size_t *values, int count)
{
    int *ints = mem_array((size_t)count, sizeof *ints);
    for (int i = 0; i < count; i++)
        ints[i] = (int)values[i];
    return ints;
}

/* The arrays of counts and offsets must live until the request is complete. After a request that
 * was given up, MPI may still read them. */
struct layout {
    int *counts, *offsets;
};

static struct layout layout_new(const size_t *sizes, int count)
{
    size_t *offsets AUTO_FREE = offsets_new(sizes, count);
    return (struct layout){ints_new(sizes, count), ints_new(offsets, count)};
}

static void layout_free(const struct engine_comm *comm, struct layout *layout)
{
    if (atomic_load(&comm->world->aborted))
        return;
    free(layout->counts);
    free(layout->offsets);
}

enum hvd_status mpi_allgatherv(struct engine_comm *comm, const void *in, void *out,
                               const size_t *bytes, struct error *err)
{
    enum hvd_status status = request_may_start(comm, err);
    if (status != HVD_OK)
        return status;
    size_t size = (size_t)comm->size, total = sum(bytes, comm->size), own = bytes[comm->rank];
    if (total > comm->world->piece) {
        size_t *at AUTO_FREE = offsets_new(bytes, comm->size);
        size_t *send AUTO_FREE = mem_array(size, sizeof *send);
        size_t *send_at AUTO_FREE = mem_array(size, sizeof *send_at);
        for (size_t i = 0; i < size; i++)
            send[i] = own;
        return move(comm, (char *)in, send, send_at, out, bytes, at, 0, err);
    }
    struct layout layout = layout_new(bytes, comm->size);
    char *place = (char *)out + layout.offsets[comm->rank];
    const void *from = in == place ? MPI_IN_PLACE : in;
    status = RUN_DATA(comm, "allgatherv", err,
                      MPI_Allgatherv(from, (int)own, MPI_BYTE, out, layout.counts, layout.offsets,
                                     MPI_BYTE, comm->comm),
                      MPI_Iallgatherv(from, (int)own, MPI_BYTE, out, layout.counts, layout.offsets,
                                      MPI_BYTE, comm->comm, &request));
    layout_free(comm, &layout);
    return status;
}

enum hvd_status mpi_alltoallv(struct engine_comm *comm, const void *in, const size_t *send_bytes,
                              void *out, const size_t *receive_bytes, int64_t timeout_ms,
                              struct error *err)
{
    enum hvd_status status = request_may_start(comm, err);
    if (status != HVD_OK)
        return status;
    size_t *send_at AUTO_FREE = offsets_new(send_bytes, comm->size);
    size_t *receive_at AUTO_FREE = offsets_new(receive_bytes, comm->size);
    /* A rank cannot see whether the sums of all ranks fit an int, as MPI_Ialltoallv needs it. */
    return move(comm, (char *)in, send_bytes, send_at, out, receive_bytes, receive_at, timeout_ms,
                err);
}

/* A reduction to each rank in turn, in pieces. */
static enum hvd_status reduce_to_each(struct engine_comm *comm, const void *in, void *out,
                                      const size_t *counts, size_t bytes, MPI_Datatype type,
                                      MPI_Op op, struct error *err)
{
    enum hvd_status status = HVD_OK;
    const char *from = in;
    for (int root = 0; root < comm->size; root++) {
        size_t piece = piece_of(comm, bytes, SIZE_MAX);
        for (size_t at = 0; at < counts[root] && status == HVD_OK; at += piece) {
            int part = (int)smaller(piece, counts[root] - at);
            char *to = comm->rank == root ? (char *)out + at * bytes : NULL;
            const char *where = from + at * bytes;
            status = RUN_DATA(comm, "reduce", err,
                              MPI_Reduce(where, to, part, type, op, root, comm->comm),
                              MPI_Ireduce(where, to, part, type, op, root, comm->comm, &request));
        }
        from += counts[root] * bytes;
    }
    return status;
}

enum hvd_status mpi_reducescatter(struct engine_comm *comm, const void *in, void *out,
                                  const size_t *counts, enum hvd_type type, enum hvd_op op,
                                  struct error *err)
{
    MPI_Datatype mpi_type;
    MPI_Op mpi_op;
    enum hvd_status status = find(comm, type, op, &mpi_type, &mpi_op, err);
    size_t bytes = hvd_type_bytes((int)type);
    if (status != HVD_OK)
        return status;
    if (sum(counts, comm->size) * bytes > comm->world->piece)
        return reduce_to_each(comm, in, out, counts, bytes, mpi_type, mpi_op, err);
    struct layout layout = layout_new(counts, comm->size);
    status = RUN_DATA(
        comm, "reduce_scatter", err,
        MPI_Reduce_scatter(in, out, layout.counts, mpi_type, mpi_op, comm->comm),
        MPI_Ireduce_scatter(in, out, layout.counts, mpi_type, mpi_op, comm->comm, &request));
    layout_free(comm, &layout);
    return status;
}
