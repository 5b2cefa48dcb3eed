/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of hvd.h: process sets. */
#include <stdlib.h>

#include "base/mem.h"
#include "loop/library.h"
#include "loop/sets.h"

/* No tensor of a program should have it. */
#define MPI_NAME "libhvd: process sets of MPI communicators"

/* All ranks of the job submit it to set 0, and wait. */
static enum hvd_status change_sets(struct world *world, struct request *request, int32_t *number)
{
    struct error err = ERROR_INIT;
    hvd_handle handle;
    struct handles *handles = world->handles;
    struct submission *token = handle_create(handles, 1, NULL, NULL, true, &handle);
    struct process_set *all = sets_hold(&world->sets, 0);
    enum hvd_status status = set_submit(all, request, token, 1, &err);
    if (status == HVD_OK) {
        set_hurry(all, token);
        status = handle_wait(handles, handle, -1, (struct results){0}, number, &err);
    } else {
        handle_discard(handles, handle);
    }
    set_release(all);
    if (status == HVD_ERR_DUPLICATE_NAME)
        return library_fail(HVD_ERR_BUSY, "another thread of this rank does the same");
    return status == HVD_OK ? HVD_OK : library_fail(status, "%s", err.text);
}

static enum hvd_status add(struct world *world, const int32_t *ranks, int32_t count, int32_t *set)
{
    struct error err = ERROR_INIT;
    int *sorted AUTO_FREE = members_sorted(ranks, count, world->place.size, &err);
    if (sorted == NULL)
        return library_fail(HVD_ERR_ARGUMENT, "%s", err.text);
    struct request request = request_bare(KIND_ADD_SET, NULL);
    request.dims = count;
    request.shape = mem_array((size_t)count, sizeof *request.shape);
    for (int32_t i = 0; i < count; i++)
        request.shape[i] = sorted[i];
    return change_sets(world, &request, set);
}

int hvd_add_process_set(const int32_t *ranks, int32_t count, int32_t *set)
{
    struct world *world AUTO_LEAVE = library_enter();
    if (world == NULL)
        return HVD_ERR_NOT_INITIALIZED;
    int32_t number = -1;
    enum hvd_status status = set == NULL
                                 ? library_fail(HVD_ERR_ARGUMENT, "there is no room for the number")
                                 : add(world, ranks, count, &number);
    if (status == HVD_OK || status == HVD_ERR_SET_EXISTS)
        *set = number;
    return status;
}

static enum hvd_status unknown(int32_t set)
{
    return library_fail(HVD_ERR_UNKNOWN_SET, "there is not a process set with the number %d", set);
}

static enum hvd_status remove_set(struct world *world, int32_t set)
{
    struct process_set *found = sets_hold(&world->sets, set);
    struct request request = request_bare(KIND_REMOVE_SET, NULL);
    request.root = set;
    set_release(found);
    if (found != NULL && set != 0)
        return change_sets(world, &request, NULL);
    request_destroy(&request);
    return found == NULL ? unknown(set)
                         : library_fail(HVD_ERR_ARGUMENT, "the set 0 cannot be removed");
}

int hvd_remove_process_set(int32_t set)
{
    struct world *world AUTO_LEAVE = library_enter();
    return world == NULL ? HVD_ERR_NOT_INITIALIZED : remove_set(world, set);
}

/* Holds the set, if it exists. */
static enum hvd_status find(struct world *world, int32_t set, struct process_set **found)
{
    *found = world == NULL ? NULL : sets_hold(&world->sets, set);
    if (*found != NULL)
        return HVD_OK;
    return world == NULL ? HVD_ERR_NOT_INITIALIZED : unknown(set);
}

int hvd_process_set_size(int32_t set)
{
    struct world *world AUTO_LEAVE = library_enter();
    struct process_set *found AUTO_SET;
    enum hvd_status status = find(world, set, &found);
    return status == HVD_OK ? found->count : (int)status;
}

static int own_rank(const struct process_set *set)
{
    return set->rank >= 0 ? set->rank
                          : (int)library_fail(HVD_ERR_NOT_MEMBER,
                                              "this rank is not a member of the set %d", set->id);
}

int hvd_process_set_rank(int32_t set)
{
    struct world *world AUTO_LEAVE = library_enter();
    struct process_set *found AUTO_SET;
    enum hvd_status status = find(world, set, &found);
    return status == HVD_OK ? own_rank(found) : (int)status;
}

int hvd_use_gpu(int32_t set, int32_t device)
{
    struct world *world AUTO_LEAVE = library_enter();
    struct process_set *found AUTO_SET;
    enum hvd_status status = find(world, set, &found);
    int rank = status == HVD_OK ? own_rank(found) : (int)status;
    if (rank < 0)
        return rank;
    return device < 0 ? (int)library_fail(HVD_ERR_ARGUMENT, "%d is not the number of a GPU", device)
                      : gpu_set_claim(found->executor.gpu_set, device);
}

int hvd_process_set_ranks(int32_t set, int32_t *ranks, int32_t room)
{
    struct world *world AUTO_LEAVE = library_enter();
    struct process_set *found AUTO_SET;
    enum hvd_status status = find(world, set, &found);
    if (status != HVD_OK)
        return status;
    if (room < 0 || (room > 0 && ranks == NULL))
        return library_fail(HVD_ERR_ARGUMENT, "the room for the ranks is not valid");
    for (int i = 0; i < found->count && i < room; i++)
        ranks[i] = found->ranks[i];
    return found->count;
}

int hvd_process_set_ids(int32_t *sets, int32_t room)
{
    struct world *world AUTO_LEAVE = library_enter();
    if (world == NULL)
        return HVD_ERR_NOT_INITIALIZED;
    return room < 0 || (room > 0 && sets == NULL)
               ? (int)library_fail(HVD_ERR_ARGUMENT, "the room for the numbers is not valid")
               : sets_ids(&world->sets, sets, room);
}

/* ---- Sets of MPI communicators --------------------------------------------------------------- */

/* This rank's set, ascending, for the caller to free; NULL with HVD_OK: it is in none. */
static enum hvd_status own_set(const void *communicator, int32_t **ranks, int32_t *count)
{
    struct error err = ERROR_INIT;
    int32_t *given = NULL;
    struct world *world AUTO_LEAVE = library_enter();
    if (world == NULL)
        return HVD_ERR_NOT_INITIALIZED;
    enum hvd_status status = world_mpi_members(world, communicator, &given, count, &err);
    *ranks = NULL;
    if (status == HVD_OK && *count > 0) {
        *ranks = members_sorted(given, *count, world->place.size, &err);
        status = *ranks == NULL ? HVD_ERR_ARGUMENT : HVD_OK;
    }
    free(given);
    return status == HVD_OK ? HVD_OK : library_fail(status, "%s", err.text);
}

/* All ranks learn the sets of all. */
static int gather(const int32_t *ranks, int32_t count, struct hvd_result *result)
{
    const int64_t length = count;
    struct hvd_tensor tensor = HVD_TENSOR_INIT;
    tensor.name = MPI_NAME;
    tensor.type = HVD_INT32;
    tensor.shape = &length;
    tensor.dims = 1;
    tensor.input = ranks;
    int status = hvd_allgather(&tensor, NULL, result);
    return status == HVD_ERR_DUPLICATE_NAME
               ? (int)library_fail(HVD_ERR_BUSY, "another thread of this rank does the same")
               : status;
}

/* All ranks have the same list, so they add the sets in the same order. */
static int add_all(const struct given_sets *given, int32_t rank, int32_t *set)
{
    struct error err = ERROR_INIT;
    int own = HVD_OK;
    if (given_sets_check(given, &err) != 0)
        return library_fail(HVD_ERR_MISMATCH, "%s", err.text);
    for (int32_t i = 0; i < given->size; i++) {
        const int32_t *ranks = given_sets_first(given, i);
        int32_t number = -1;
        if (ranks == NULL)
            continue;
        int status = hvd_add_process_set(ranks, (int32_t)given->counts[i], &number);
        if (status != HVD_OK && status != HVD_ERR_SET_EXISTS)
            return status;
        if (given->counts[rank] > 0 && given_sets_of(given, rank)[0] == i) {
            own = status;
            *set = number;
        }
    }
    return own == HVD_OK ? HVD_OK : (int)library_fail(own, "a process set with these ranks exists");
}

int hvd_add_process_sets_mpi(const void *communicator, int32_t *set)
{
    int32_t *ranks = NULL, count = 0;
    struct hvd_result result = HVD_RESULT_INIT;
    if (communicator == NULL || set == NULL)
        return library_fail(HVD_ERR_ARGUMENT, "%s is NULL",
                            set == NULL ? "the room for the number" : "the communicator");
    int status = own_set(communicator, &ranks, &count);
    if (status != HVD_OK)
        return status;
    *set = -1;
    status = gather(ranks, count, &result);
    if (status == HVD_OK) {
        struct given_sets given = {result.data, result.splits, result.split_count};
        status = add_all(&given, hvd_rank(), set);
    }
    hvd_result_free(&result);
    free(ranks);
    return status;
}
