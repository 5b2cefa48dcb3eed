/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/mpi/members.h"

#include <stdlib.h>

#include "base/mem.h"
#include "engine/mpi/request.h"

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

enum hvd_status mpi_members(struct engine_world *world, const void *communicator, int32_t **ranks,
                            int32_t *count, struct error *err)
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
