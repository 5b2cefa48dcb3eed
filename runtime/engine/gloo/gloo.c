/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine gloo: TCP between all members of a process set, without MPI. Ranks find each other
 * through the launcher's HTTP store, as Horovod's workers do. Opening a world waits there for all
 * ranks (meeting_begin). The addresses are in scopes named hvd_set_ID. Horovod never uses such
 * names.
 *
 * Each communicator has connections of its own, so process sets do not delay each other. The end of
 * a process breaks its connections: the others notice it at once. If a host vanishes, they notice
 * it after the time-out.
 *
 * abort() wakes every blocked call. Gloo has operations for what a collective needs, except an
 * uneven reducescatter, which here is an alltoall and then a reduction on each rank.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "engine/elements.h"
#include "engine/engine.h"
#include "engine/gloo/shim.h"
#include "engine/setup.h"
#include "engine/store.h"

const char mem_last_words[] = ENGINE_LAST_WORDS;

/* ---- Worlds and communicators ---------------------------------------------------------------- */

enum { ADDRESSES_MAX = 64 * 1024 * 1024 };

struct engine_world {
    struct engine_place place;
    char *host; /* of the store */
    int port;
    char *own_host; /* NULL: unknown */
    atomic_bool met;
    int64_t timeout_ms;
    struct device *device;
    atomic_bool aborted;
    pthread_mutex_t lock; /* guards the list of communicators, against abort() only */
    struct engine_comm *first;
};

struct engine_comm {
    struct engine_world *world; /* NULL: not in its list */
    struct engine_comm *next;
    struct mesh *mesh;
    int rank, size; /* in the set */
};

static enum hvd_status check_setup(const struct engine_setup *setup, struct error *err)
{
    if (setup->place.size == 0)
        error_set(err, "the engine 'gloo' needs HOROVOD_RANK and HOROVOD_SIZE: start the program "
                       "with hvdrun");
    else if (setup->place.size > 1 && setup->address == NULL)
        error_set(err, "the engine 'gloo' needs HOROVOD_GLOO_RENDEZVOUS_ADDR and _PORT: start the "
                       "program with hvdrun");
    else
        return HVD_OK;
    return HVD_ERR_ARGUMENT;
}

/* ---- Meeting the other ranks ----------------------------------------------------------------- */

/*
 * The ranks of a job meet in the launcher's store, by the scopes and keys that Horovod's workers
 * use. From them, hvdrun learns which rank has come, which rank waits for which, and when all are
 * connected. Other launchers only store them.
 */

#define GATE_MS (660 * 1000) /* hvdrun opens its gate after 600 s at the latest */

static struct store store_of(const struct engine_world *world)
{
    return (struct store){world->host, world->port, world->timeout_ms, &world->aborted};
}

/* The first request of a rendezvous. hvdrun answers it when all ranks have sent it, however long
 * their imports last. It also holds the newcomers of an elastic job until they can join. */
static enum hvd_status meeting_begin(const struct engine_world *world, struct error *err)
{
    struct store store = store_of(world);
    char key[32];
    const char *host = world->own_host != NULL ? world->own_host : "";
    if (store.timeout_ms < GATE_MS)
        store.timeout_ms = GATE_MS;
    snprintf(key, sizeof(key), "rank_%d", world->place.rank);
    return store_put(&store, "global", key, host, strlen(host), err);
}

static enum hvd_status done_in(const struct engine_world *world, const char *scope, int number,
                               struct error *err)
{
    const struct store store = store_of(world);
    char key[32];
    snprintf(key, sizeof(key), "%d", number);
    enum hvd_status status = store_put(&store, scope, key, "", 0, err);
    return status == HVD_OK ? store_delete(&store, scope, key, err) : status;
}

/* This rank is connected to all others. */
static enum hvd_status meeting_done(const struct engine_world *world, struct error *err)
{
    const struct engine_place *place = &world->place;
    if (world->own_host == NULL)
        return HVD_OK;
    char *local AUTO_FREE = mem_printf("local_%s", world->own_host);
    char *cross AUTO_FREE = mem_printf("cross_%d", place->local_rank);
    enum hvd_status status = done_in(world, "global", place->rank, err);
    if (status == HVD_OK)
        status = done_in(world, local, place->local_rank, err);
    return status == HVD_OK ? done_in(world, cross, place->cross_rank, err) : status;
}

/* ---- Opening and closing --------------------------------------------------------------------- */

static void gloo_close(struct engine_world *world)
{
    if (world == NULL)
        return;
    device_destroy(world->device);
    pthread_mutex_destroy(&world->lock);
    free(world->own_host);
    free(world->host);
    free(world);
}

static enum hvd_status gloo_open(const struct engine_setup *setup, struct engine_world **world,
                                 struct engine_place *place, struct error *err)
{
    enum hvd_status status = check_setup(setup, err);
    struct device *device = NULL;
    if (status == HVD_OK)
        status = device_create(setup->interface, &device, err);
    if (status != HVD_OK)
        return status;
    struct engine_world *made = mem_alloc(sizeof *made);
    made->place = *place = setup->place;
    made->host = mem_strdup(setup->address);
    made->port = setup->port;
    made->own_host = mem_strdup(setup->host);
    made->timeout_ms = setup->timeout_ms;
    made->device = device;
    atomic_init(&made->aborted, false);
    atomic_init(&made->met, false);
    pthread_mutex_init(&made->lock, NULL);
    if (made->place.size > 1)
        status = meeting_begin(made, err);
    if (status == HVD_OK)
        *world = made;
    else
        gloo_close(made);
    return status;
}

static void gloo_abort(struct engine_world *world)
{
    atomic_store(&world->aborted, true);
    pthread_mutex_lock(&world->lock);
    for (struct engine_comm *comm = world->first; comm != NULL; comm = comm->next)
        mesh_wake(comm->mesh);
    pthread_mutex_unlock(&world->lock);
}

/* From then on abort() finds it. */
static enum hvd_status join(struct engine_world *world, struct engine_comm *comm, struct error *err)
{
    pthread_mutex_lock(&world->lock);
    bool aborted = atomic_load(&world->aborted);
    if (!aborted) {
        comm->world = world;
        comm->next = world->first;
        world->first = comm;
    }
    pthread_mutex_unlock(&world->lock);
    if (!aborted)
        return HVD_OK;
    error_set(err, "the engine was aborted");
    return HVD_ERR_PEER_LOST;
}

static void leave(struct engine_comm *comm)
{
    if (comm->world == NULL)
        return;
    pthread_mutex_lock(&comm->world->lock);
    struct engine_comm **at = &comm->world->first;
    while (*at != comm)
        at = &(*at)->next;
    *at = comm->next;
    pthread_mutex_unlock(&comm->world->lock);
}

static void gloo_comm_destroy(struct engine_comm *comm)
{
    if (comm == NULL)
        return;
    leave(comm);
    mesh_destroy(comm->mesh);
    free(comm);
}

static enum hvd_status meet(struct engine_comm *comm, const struct store *store, const char *scope,
                            struct error *err)
{
    size_t length;
    const void *own = mesh_addresses(comm->mesh, &length);
    char *key AUTO_FREE = mem_printf("%d", comm->rank);
    enum hvd_status status = store_put(store, scope, key, own, length, err);
    AUTO_BUF struct buf addresses = BUF_INIT(ADDRESSES_MAX);
    for (int peer = 0; peer < comm->size && status == HVD_OK; peer++) {
        if (peer == comm->rank)
            continue;
        char *other AUTO_FREE = mem_printf("%d", peer);
        status = store_wait(store, scope, other, &addresses, err);
        if (status == HVD_OK)
            status = mesh_connect(comm->mesh, peer, buf_text(&addresses), addresses.length, err);
    }
    /* Another communicator of this name must not find these addresses. So they go when all ranks
     * have read them, and nobody returns before they have gone. */
    if (status == HVD_OK)
        status = mesh_barrier(comm->mesh, err);
    if (status == HVD_OK)
        status = store_delete(store, scope, key, err);
    return status == HVD_OK ? mesh_barrier(comm->mesh, err) : status;
}

/* Once, with the first communicator of all ranks. */
static enum hvd_status say_met(struct engine_world *world, struct error *err)
{
    return atomic_exchange(&world->met, true) ? HVD_OK : meeting_done(world, err);
}

static enum hvd_status gloo_comm_create(struct engine_world *world, uint64_t id, const int *ranks,
                                        int count, struct engine_comm **comm, struct error *err)
{
    int own;
    enum hvd_status status = ranks_find(&world->place, ranks, count, &own, err);
    if (status != HVD_OK)
        return status;
    struct engine_comm *made = mem_alloc(sizeof *made);
    made->rank = own;
    made->size = count;
    status = mesh_create(world->device, own, count, world->timeout_ms, &made->mesh, err);
    if (status == HVD_OK)
        status = join(world, made, err);
    if (status == HVD_OK && count > 1) {
        const struct store store = store_of(world);
        char *scope AUTO_FREE = mem_printf("hvd_set_%llx", (unsigned long long)id);
        status = meet(made, &store, scope, err);
        if (status == HVD_OK && count == world->place.size)
            status = say_met(world, err);
        if (status == HVD_ERR_TIMEOUT)
            status = HVD_ERR_PEER_LOST;
    }
    if (status == HVD_OK)
        *comm = made;
    else
        gloo_comm_destroy(made);
    return status;
}

/* ---- Operations: see engine/engine.h for each ------------------------------------------------ */

static reduce_function *find(enum hvd_type type, enum hvd_op op, struct error *err)
{
    reduce_function *reduce = reduce_find(type, op);
    if (reduce == NULL)
        error_set(err, "the engine 'gloo' does not have this type or operation");
    return reduce;
}

static enum hvd_status gloo_allreduce(struct engine_comm *comm, void *data, size_t count,
                                      enum hvd_type type, enum hvd_op op, struct error *err)
{
    reduce_function *reduce = find(type, op, err);
    if (reduce == NULL)
        return HVD_ERR_UNSUPPORTED;
    return mesh_allreduce(comm->mesh, data, count, hvd_type_bytes((int)type), reduce, err);
}

static enum hvd_status gloo_allgatherv(struct engine_comm *comm, const void *in, void *out,
                                       const size_t *bytes, struct error *err)
{
    return mesh_allgatherv(comm->mesh, in, out, bytes, err);
}

static enum hvd_status gloo_broadcast(struct engine_comm *comm, void *data, size_t bytes, int root,
                                      struct error *err)
{
    return mesh_broadcast(comm->mesh, data, bytes, root, err);
}

static enum hvd_status gloo_alltoallv(struct engine_comm *comm, const void *in,
                                      const size_t *send_bytes, void *out,
                                      const size_t *receive_bytes, int64_t timeout_ms,
                                      struct error *err)
{
    (void)timeout_ms;
    return mesh_alltoallv(comm->mesh, in, send_bytes, out, receive_bytes, err);
}

/* Each rank receives its part from all others: as many bytes travel as in any other algorithm. The
 * parts are combined in the order of ranks, so the result does not depend on who was faster. */
static enum hvd_status gloo_reducescatter(struct engine_comm *comm, const void *in, void *out,
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

/* ---- The table ------------------------------------------------------------------------------- */

static const struct engine engine_gloo = {
    .version = ENGINE_VERSION,
    .name = "gloo",
    .lanes = 2,
    .open = gloo_open,
    .close = gloo_close,
    .abort = gloo_abort,
    .comm_create = gloo_comm_create,
    .comm_destroy = gloo_comm_destroy,
    .allreduce = gloo_allreduce,
    .allgatherv = gloo_allgatherv,
    .broadcast = gloo_broadcast,
    .alltoallv = gloo_alltoallv,
    .reducescatter = gloo_reducescatter,
};

__attribute__((visibility("default"))) const struct engine *hvd_engine_module(void)
{
    return &engine_gloo;
}
