/* SPDX-License-Identifier: Apache-2.0 */
/* The engine of a job with one rank. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "engine/elements.h"
#include "engine/engine.h"

struct engine_world {
    atomic_bool aborted;
};

struct engine_comm {
    struct engine_world *world;
};

static enum hvd_status self_open(const struct engine_setup *setup, struct engine_world **world,
                                 struct engine_place *place, struct error *err)
{
    if (setup->place.size > 1) {
        error_set(err, "the job has %d ranks, and the engine 'self' is for one", setup->place.size);
        return HVD_ERR_ARGUMENT;
    }
    *place = (struct engine_place){.size = 1, .local_size = 1, .cross_size = 1};
    *world = mem_alloc(sizeof **world);
    atomic_init(&(*world)->aborted, false);
    return HVD_OK;
}

static void self_close(struct engine_world *world)
{
    free(world);
}

static void self_abort(struct engine_world *world)
{
    atomic_store(&world->aborted, true);
}

static enum hvd_status usable(const struct engine_world *world, struct error *err)
{
    if (!atomic_load(&world->aborted))
        return HVD_OK;
    error_set(err, "the engine was aborted");
    return HVD_ERR_PEER_LOST;
}

static enum hvd_status self_comm_create(struct engine_world *world, uint64_t id, const int *ranks,
                                        int count, struct engine_comm **comm, struct error *err)
{
    (void)id;
    if (count != 1 || ranks[0] != 0) {
        error_set(err, "a process set of a job with one rank has only rank 0");
        return HVD_ERR_ARGUMENT;
    }
    enum hvd_status status = usable(world, err);
    if (status == HVD_OK) {
        *comm = mem_alloc(sizeof **comm);
        (*comm)->world = world;
    }
    return status;
}

static void self_comm_destroy(struct engine_comm *comm)
{
    free(comm);
}

static enum hvd_status copy(const struct engine_comm *comm, void *to, const void *from,
                            size_t bytes, struct error *err)
{
    enum hvd_status status = usable(comm->world, err);
    if (status == HVD_OK && bytes > 0 && to != from)
        memcpy(to, from, bytes);
    return status;
}

static enum hvd_status self_allreduce(struct engine_comm *comm, void *data, size_t count,
                                      enum hvd_type type, enum hvd_op op, struct error *err)
{
    (void)data, (void)count;
    if (reduce_find(type, op) == NULL) {
        error_set(err, "the engine 'self' does not have this type or operation");
        return HVD_ERR_UNSUPPORTED;
    }
    return usable(comm->world, err);
}

static enum hvd_status self_allgatherv(struct engine_comm *comm, const void *in, void *out,
                                       const size_t *bytes, struct error *err)
{
    return copy(comm, out, in, bytes[0], err);
}

static enum hvd_status self_broadcast(struct engine_comm *comm, void *data, size_t bytes, int root,
                                      struct error *err)
{
    (void)data, (void)bytes, (void)root;
    return usable(comm->world, err);
}

static enum hvd_status self_alltoallv(struct engine_comm *comm, const void *in,
                                      const size_t *send_bytes, void *out,
                                      const size_t *receive_bytes, int64_t timeout_ms,
                                      struct error *err)
{
    (void)receive_bytes, (void)timeout_ms;
    return copy(comm, out, in, send_bytes[0], err);
}

static enum hvd_status self_reducescatter(struct engine_comm *comm, const void *in, void *out,
                                          const size_t *counts, enum hvd_type type, enum hvd_op op,
                                          struct error *err)
{
    enum hvd_status status = self_allreduce(comm, NULL, 0, type, op, err);
    return status == HVD_OK ? copy(comm, out, in, counts[0] * hvd_type_bytes((int)type), err)
                            : status;
}

const struct engine engine_self = {
    .version = ENGINE_VERSION,
    .name = "self",
    .lanes = 1,
    .open = self_open,
    .close = self_close,
    .abort = self_abort,
    .comm_create = self_comm_create,
    .comm_destroy = self_comm_destroy,
    .allreduce = self_allreduce,
    .allgatherv = self_allgatherv,
    .broadcast = self_broadcast,
    .alltoallv = self_alltoallv,
    .reducescatter = self_reducescatter,
};
