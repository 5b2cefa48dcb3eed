/* SPDX-License-Identifier: Apache-2.0 */
/* The function of hvd.h that adds the process sets of MPI communicators. */
#include <stdlib.h>

#include "base/mem.h"
#include "loop/given_sets.h"
#include "loop/library.h"
#include "loop/members.h"

/* No tensor of a program should have it. */
#define NAME "libhvd: process sets of MPI communicators"

/* This rank's set, ascending, for the caller to free; NULL with HVD_OK: it is in none. */
static enum hvd_status own_set(const void *communicator, int32_t **ranks, int32_t *count)
{
    struct error err = ERROR_INIT;
    int32_t *given = NULL;
    struct world *world = library_enter();
    if (world == NULL)
        return HVD_ERR_NOT_INITIALIZED;
    enum hvd_status status = world_mpi_members(world, communicator, &given, count, &err);
    *ranks = NULL;
    if (status == HVD_OK && *count > 0) {
        *ranks = members_sorted(given, *count, world_place(world)->size, &err);
        status = *ranks == NULL ? HVD_ERR_ARGUMENT : HVD_OK;
    }
    free(given);
    library_leave();
    return status == HVD_OK ? HVD_OK : library_fail(status, "%s", err.text);
}

/* All ranks learn the sets of all. */
static int gather(const int32_t *ranks, int32_t count, struct hvd_result *result)
{
    const int64_t length = count;
    struct hvd_tensor tensor = HVD_TENSOR_INIT;
    tensor.name = NAME;
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
