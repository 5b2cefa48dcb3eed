/* SPDX-License-Identifier: Apache-2.0 */
/* Process sets of communicators that the program has made with MPI. */
#include <mpi.h>

#include "job.h"
#include "worker.h"

static double sum(double value, int32_t set)
{
    struct hvd_options options = HVD_OPTIONS_INIT;
    struct hvd_tensor tensor = HVD_TENSOR_INIT;
    tensor.name = "sum";
    tensor.type = HVD_FLOAT64;
    tensor.input = tensor.output = &value;
    options.op = HVD_SUM;
    options.set = set;
    job_expect(hvd_allreduce(&tensor, &options), HVD_OK, "", "allreduce in a set");
    return value;
}

/* Rank 0 has none, and the other ranks are split by parity, in descending order. */
static void test_split(const struct job *job)
{
    MPI_Comm comm;
    int32_t set = -2, again = -2;
    int colour = job->rank == 0 ? MPI_UNDEFINED : job->rank % 2;
    double expected = 0;
    MPI_Comm_split(MPI_COMM_WORLD, colour, -job->rank, &comm);
    job_expect(hvd_add_process_sets_mpi(&comm, &set), HVD_OK, "", "the first time");
    if (job->rank == 0) {
        if (set != -1)
            worker_fail("rank 0 got the set %d", set);
        job_expect(hvd_add_process_sets_mpi(&comm, &again), HVD_OK, "", "again");
        return;
    }
    for (int rank = 1; rank < job->size; rank++)
        expected += rank % 2 == colour ? rank : 0;
    double result = sum(job->rank, set);
    if (result != expected)
        worker_fail("the sum of the set %d is %g, not %g", set, result, expected);
    job_expect(hvd_add_process_sets_mpi(&comm, &again), HVD_ERR_SET_EXISTS, "exists", "again");
    if (again != set)
        worker_fail("the set %d has the number %d, too", set, again);
    MPI_Comm_free(&comm);
}

static void test_all(const struct job *job)
{
    MPI_Comm all = MPI_COMM_WORLD;
    int32_t set = -2;
    job_expect(hvd_add_process_sets_mpi(&all, &set), HVD_ERR_SET_EXISTS, "exists", "all ranks");
    if (set != 0)
        worker_fail("all ranks are the set %d", set);
    MPI_Comm own = job->rank == 0 ? MPI_COMM_WORLD : MPI_COMM_NULL;
    if (job->size > 1)
        job_expect(hvd_add_process_sets_mpi(&own, &set), HVD_ERR_MISMATCH, "rank 0 has rank 1",
                   "different communicators");
}

static void test_intercommunicator(const struct job *job)
{
    MPI_Comm half, both;
    int32_t set;
    if (job->size < 2)
        return;
    MPI_Comm_split(MPI_COMM_WORLD, job->rank % 2, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - job->rank % 2, 7, &both);
    job_expect(hvd_add_process_sets_mpi(&both, &set), HVD_ERR_ARGUMENT, "intercommunicator",
               "an intercommunicator");
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
}

int main(void)
{
    struct job job = job_begin();
    test_split(&job);
    test_all(&job);
    test_intercommunicator(&job);
    sum(1, 0);
    job_end(&job);
    return 0;
}
