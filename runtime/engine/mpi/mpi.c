/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine mpi, for Open MPI 4 and later. It is for static jobs: without the extension ULFM, MPI
 * does not notice the end of a process in a way that the others could act on, and most often the
 * launcher ends the job. Errors that MPI returns are HVD_ERR_ENGINE.
 *
 * Threads: with MPI_THREAD_MULTIPLE, process sets proceed at the same time. With less, each call of
 * MPI is made under a lock. Such calls start requests or test them, and return at once, so sets
 * still do not wait for each other. But then the program itself must not call MPI at the same time.
 *
 * abort() wakes alltoallv, and with less than MPI_THREAD_MULTIPLE all operations. With it, an
 * allreduce, allgatherv, broadcast or reducescatter is one blocking call of MPI, which nothing can
 * wake. These have no time-out, because MPI does not say whether it makes progress.
 *
 * This file has worlds and communicators. Operations are in mpi/operations.c.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "engine/engine.h"
#include "engine/mpi/request.h"
#include "engine/setup.h"

const char mem_last_words[] = ENGINE_LAST_WORDS;

enum { PIECE = 1 << 30, TAGS = 32768 }; /* MPI promises tags below 32768 */

static enum hvd_status initialize(struct engine_world *world, bool threads_wanted,
                                  struct error *err)
{
    int is_up = 0, is_down = 0, threads = MPI_THREAD_SINGLE;
    MPI_Finalized(&is_down);
    if (is_down) {
        error_set(err, "MPI was finalized in this process, and cannot be initialized again");
        return HVD_ERR_ENGINE;
    }
    MPI_Initialized(&is_up);
    if (is_up) {
        MPI_Query_thread(&threads);
    } else {
        int code = MPI_Init_thread(
            NULL, NULL, threads_wanted ? MPI_THREAD_MULTIPLE : MPI_THREAD_SERIALIZED, &threads);
        if (code != MPI_SUCCESS)
            return request_failed(code, "MPI_Init_thread", err);
        world->own_init = true;
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    }
    world->one_at_a_time = threads < MPI_THREAD_MULTIPLE || !threads_wanted;
    return HVD_OK;
}

/* The numbers of this host, and of this local rank on all hosts. */
static int split_by_host(struct engine_world *world)
{
    MPI_Comm local = MPI_COMM_NULL, cross = MPI_COMM_NULL;
    struct engine_place *place = &world->place;
    int code =
        MPI_Comm_split_type(world->all, MPI_COMM_TYPE_SHARED, place->rank, MPI_INFO_NULL, &local);
    if (code != MPI_SUCCESS)
        return code;
    MPI_Comm_rank(local, &place->local_rank);
    MPI_Comm_size(local, &place->local_size);
    MPI_Comm_free(&local);
    code = MPI_Comm_split(world->all, place->local_rank, place->rank, &cross);
    if (code != MPI_SUCCESS)
        return code;
    MPI_Comm_rank(cross, &place->cross_rank);
    MPI_Comm_size(cross, &place->cross_size);
    return MPI_Comm_free(&cross);
}

/* The launcher's numbers if there are any: it may know hosts that MPI cannot tell apart. */
static enum hvd_status find_place(struct engine_world *world, const struct engine_place *given,
                                  struct error *err)
{
    struct engine_place *place = &world->place;
    MPI_Comm_rank(world->all, &place->rank);
    MPI_Comm_size(world->all, &place->size);
    if (given->size == 0) {
        int code = split_by_host(world);
        return code == MPI_SUCCESS ? HVD_OK : request_failed(code, "MPI_Comm_split", err);
    }
    if (given->size != place->size || given->rank != place->rank) {
        error_set(err,
                  "MPI says that this is rank %d of %d, and the launcher says rank %d of %d: start "
                  "the program with hvdrun --mpi=pmix --controller mpi",
                  place->rank, place->size, given->rank, given->size);
        return HVD_ERR_ARGUMENT;
    }
    *place = *given;
    return HVD_OK;
}

static enum hvd_status set_up(struct engine_world *world, const struct engine_setup *setup,
                              struct error *err)
{
    enum hvd_status status = initialize(world, !setup->mpi_threads_disabled, err);
    if (status != HVD_OK)
        return status;
    int code = MPI_Comm_dup(MPI_COMM_WORLD, &world->all);
    if (code != MPI_SUCCESS)
        return request_failed(code, "MPI_Comm_dup", err);
    MPI_Comm_set_errhandler(world->all, MPI_ERRORS_RETURN);
    code = mpi_types_create(&world->types);
    if (code != MPI_SUCCESS)
        return request_failed(code, "MPI_Op_create", err);
    return find_place(world, &setup->place, err);
}

static void mpi_close(struct engine_world *world)
{
    if (world == NULL)
        return;
    if (!atomic_load(&world->aborted)) {
        mpi_types_destroy(&world->types);
        if (world->all != MPI_COMM_NULL)
            MPI_Comm_free(&world->all);
        if (world->own_init)
            MPI_Finalize();
    }
    pthread_mutex_destroy(&world->lock);
    free(world);
}

static enum hvd_status mpi_open(const struct engine_setup *setup, struct engine_world **world,
                                struct engine_place *place, struct error *err)
{
    struct engine_world *made = mem_alloc(sizeof *made);
    atomic_init(&made->aborted, false);
    pthread_mutex_init(&made->lock, NULL);
    made->all = MPI_COMM_NULL;
    mpi_types_init(&made->types);
    made->piece = setup->piece > 0 && setup->piece < PIECE ? setup->piece : PIECE;
    enum hvd_status status = set_up(made, setup, err);
    *place = made->place;
    if (status == HVD_OK)
        *world = made;
    else
        mpi_close(made);
    return status;
}

static void mpi_abort(struct engine_world *world)
{
    atomic_store(&world->aborted, true);
}

static int create(struct engine_world *world, uint64_t id, const int *ranks, int count,
                  MPI_Comm *comm)
{
    MPI_Group all = MPI_GROUP_NULL, members = MPI_GROUP_NULL;
    int code = MPI_Comm_group(world->all, &all);
    if (code == MPI_SUCCESS)
        code = MPI_Group_incl(all, count, ranks, &members);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_create_group(world->all, members, (int)(id % TAGS), comm);
    if (members != MPI_GROUP_NULL)
        MPI_Group_free(&members);
    if (all != MPI_GROUP_NULL)
        MPI_Group_free(&all);
    if (code == MPI_SUCCESS)
        MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN);
    return code;
}

static enum hvd_status mpi_comm_create(struct engine_world *world, uint64_t id, const int *ranks,
                                       int count, struct engine_comm **comm, struct error *err)
{
    int own;
    enum hvd_status status = ranks_find(&world->place, ranks, count, &own, err);
    if (status != HVD_OK)
        return status;
    struct engine_comm *made =
        MEM_NEW((struct engine_comm){world, MPI_COMM_NULL, own, count, false});
    status = request_may_start(made, err);
    if (status == HVD_OK) {
        request_lock(world);
        int code = create(world, id, ranks, count, &made->comm);
        request_unlock(world);
        status = code == MPI_SUCCESS ? HVD_OK : request_failed(code, "MPI_Comm_create_group", err);
    }
    if (status == HVD_OK)
        *comm = made;
    else
        free(made);
    return status;
}

static void mpi_comm_destroy(struct engine_comm *comm)
{
    if (comm == NULL)
        return;
    if (!atomic_load(&comm->world->aborted)) {
        request_lock(comm->world);
        MPI_Comm_free(&comm->comm);
        request_unlock(comm->world);
    }
    free(comm);
}

/* ---- A communicator that the program has made ------------------------------------------------ */

static enum hvd_status check_kind(MPI_Comm comm, struct error *err)
{
    int is_inter = 0;
    int code = MPI_Comm_test_inter(comm, &is_inter);
    if (code == MPI_SUCCESS && !is_inter)
        return HVD_OK;
    error_set(err, code == MPI_SUCCESS ? "an intercommunicator cannot be a process set"
                                       : "this is not a communicator of MPI");
    return HVD_ERR_ARGUMENT;
}

static int translate(MPI_Comm all, MPI_Comm comm, int32_t **ranks, int32_t *count)
{
    MPI_Group from = MPI_GROUP_NULL, to = MPI_GROUP_NULL;
    int size = 0, code = MPI_Comm_group(comm, &from);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_group(all, &to);
    if (code == MPI_SUCCESS)
        code = MPI_Group_size(from, &size);
    int *own AUTO_FREE = mem_array((size_t)size, sizeof *own);
    *ranks = mem_array((size_t)size, sizeof **ranks);
    *count = size;
    for (int i = 0; i < size; i++)
        own[i] = i;
    if (code == MPI_SUCCESS)
        code = MPI_Group_translate_ranks(from, size, own, to, *ranks);
    if (to != MPI_GROUP_NULL)
        MPI_Group_free(&to);
    if (from != MPI_GROUP_NULL)
        MPI_Group_free(&from);
    return code;
}

/* See engine/engine.h: the ranks of the program's own communicator in the world. */
static enum hvd_status mpi_members(struct engine_world *world, const void *communicator,
                                   int32_t **ranks, int32_t *count, struct error *err)
{
    MPI_Comm comm = *(const MPI_Comm *)communicator;
    *ranks = NULL;
    *count = 0;
    if (atomic_load(&world->aborted)) {
        error_set(err, "the engine was aborted");
        return HVD_ERR_PEER_LOST;
    }
    if (comm == MPI_COMM_NULL)
        return HVD_OK;
    request_lock(world);
    enum hvd_status status = check_kind(comm, err);
    int code = status == HVD_OK ? translate(world->all, comm, ranks, count) : MPI_SUCCESS;
    request_unlock(world);
    if (code != MPI_SUCCESS) {
        error_set(err, "MPI cannot say which ranks the communicator has");
        status = HVD_ERR_ENGINE;
    }
    for (int32_t i = 0; i < *count && status == HVD_OK; i++)
        if ((*ranks)[i] == MPI_UNDEFINED) {
            error_set(err, "the communicator has a process that is not in this job");
            status = HVD_ERR_ARGUMENT;
        }
    if (status == HVD_OK)
        return HVD_OK;
    free(*ranks);
    *ranks = NULL;
    return status;
}

/* ---- The table ------------------------------------------------------------------------------- */

static const struct engine engine_mpi = {
    .version = ENGINE_VERSION,
    .name = "mpi",
    .keeps_buffers = true,
    .lanes = 1,
    .open = mpi_open,
    .close = mpi_close,
    .abort = mpi_abort,
    .comm_create = mpi_comm_create,
    .comm_destroy = mpi_comm_destroy,
    .allreduce = mpi_allreduce,
    .allgatherv = mpi_allgatherv,
    .broadcast = mpi_broadcast,
    .alltoallv = mpi_alltoallv,
    .reducescatter = mpi_reducescatter,
    .mpi_members = mpi_members,
};

__attribute__((visibility("default"))) const struct engine *hvd_engine_module(void)
{
    return &engine_mpi;
}
