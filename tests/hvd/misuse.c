/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wrong calls of each function of hvd.h: before hvd_init(), after hvd_shutdown(), and with
 * arguments that are not valid. Each gives a code and a text, and the library stays usable. rules.c
 * has the wrong tensors.
 */
#include <stdio.h>
#include <string.h>

#include "job.h"
#include "worker.h"

static float data[3] = {1, 1, 1};
static const int64_t three = 3;

static struct hvd_tensor tensor_of(const char *name)
{
    return job_tensor(name, HVD_FLOAT32, &three, data, data);
}

static int train(struct hvd_state *state, void *context)
{
    (void)state, (void)context;
    worker_fail("the function of hvd_elastic_run() is called");
}

/* ---- Without hvd_init() -----------------------------------------------------------------------
 */

#define EXPECT(call, status, part) job_expect(call, status, part, #call)
#define OUTSIDE(call) EXPECT(call, HVD_ERR_NOT_INITIALIZED, "call hvd_init()")

static void test_tensors_outside(void)
{
    struct hvd_tensor tensor = tensor_of("outside");
    struct hvd_result result = HVD_RESULT_INIT;
    hvd_handle handle = 7;
    OUTSIDE(hvd_poll(1));
    OUTSIDE(hvd_wait(1, -1, &result));
    OUTSIDE(hvd_allreduce_async(&tensor, NULL, &handle));
    OUTSIDE(hvd_allreduce(&tensor, NULL));
    OUTSIDE(hvd_grouped_allreduce_async(&tensor, 1, NULL, &handle));
    OUTSIDE(hvd_grouped_allreduce(&tensor, 1, NULL));
    OUTSIDE(hvd_allgather_async(&tensor, NULL, &handle));
    OUTSIDE(hvd_allgather(&tensor, NULL, &result));
    OUTSIDE(hvd_broadcast_async(&tensor, 0, NULL, &handle));
    OUTSIDE(hvd_broadcast(&tensor, 0, NULL));
    OUTSIDE(hvd_alltoall_async(&tensor, NULL, NULL, &handle));
    OUTSIDE(hvd_alltoall(&tensor, NULL, NULL, &result));
    OUTSIDE(hvd_reducescatter_async(&tensor, NULL, &handle));
    OUTSIDE(hvd_reducescatter(&tensor, NULL));
    OUTSIDE(hvd_barrier_async(NULL, &handle));
    OUTSIDE(hvd_barrier(NULL));
    OUTSIDE(hvd_join_async(NULL, &handle));
    OUTSIDE(hvd_join(NULL, NULL));
    if (handle != 7)
        worker_fail("a refused call gave the handle %lld", (long long)handle);
}

static void test_others_outside(void)
{
    int32_t set = 0, ranks[1] = {0};
    struct hvd_state *state = NULL;
    struct hvd_sampler *sampler = NULL;
    OUTSIDE(hvd_add_process_set(ranks, 1, &set));
    OUTSIDE(hvd_add_process_sets_mpi(&set, &set));
    OUTSIDE(hvd_remove_process_set(1));
    OUTSIDE(hvd_process_set_size(0));
    OUTSIDE(hvd_use_gpu(0, 0));
    OUTSIDE(hvd_process_set_rank(0));
    OUTSIDE(hvd_process_set_ranks(0, ranks, 1));
    OUTSIDE(hvd_process_set_ids(ranks, 1));
    OUTSIDE(hvd_timeline_start("timeline.json", false));
    OUTSIDE(hvd_timeline_stop());
    OUTSIDE(hvd_failure());
    OUTSIDE(hvd_sampler_create(10, true, 1, &sampler));
    EXPECT(hvd_state_create(&state), HVD_OK, "");
    EXPECT(hvd_state_add(state, "data", data, sizeof data), HVD_OK, "");
    OUTSIDE(hvd_state_commit(state));
    OUTSIDE(hvd_state_check(state));
    OUTSIDE(hvd_state_sync(state));
    OUTSIDE(hvd_elastic_run(state, train, NULL));
    if (hvd_hosts_changed(state) || hvd_hosts_changed(NULL))
        worker_fail("hosts have changed");
    hvd_state_destroy(state);
    int places[] = {hvd_rank(),       hvd_size(),       hvd_local_rank(),
                    hvd_local_size(), hvd_cross_rank(), hvd_cross_size()};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (places[i] != -1)
            worker_fail("place %zu is %d", i, places[i]);
    if (hvd_is_initialized() || hvd_is_homogeneous() || hvd_engine()[0] != '\0')
        worker_fail("the library says that it is initialized");
    EXPECT(hvd_shutdown(), HVD_OK, "");
}

/* ---- Arguments --------------------------------------------------------------------------------
 */

#define WRONG(call, part) EXPECT(call, HVD_ERR_ARGUMENT, part)

static void test_init_options(void)
{
    const int32_t zero = 0;
    const struct hvd_ranks no_list = {NULL, 1}, no_rank = {&zero, 0}, negative = {&zero, -1};
    struct hvd_init_options options = HVD_INIT_OPTIONS_INIT;
    options.set_count = 1;
    WRONG(hvd_init(&options), "list of process sets");
    options.sets = &no_list;
    WRONG(hvd_init(&options), "at least one rank");
    options.sets = &no_rank;
    WRONG(hvd_init(&options), "at least one rank");
    options.sets = &negative;
    WRONG(hvd_init(&options), "at least one rank");
    options.set_count = -1;
    WRONG(hvd_init(&options), "list of process sets");
    options.size = 0;
    WRONG(hvd_init(&options), "size");
    if (hvd_is_initialized())
        worker_fail("the library is initialized after a failure");
}

static void test_structs(void)
{
    struct hvd_tensor tensor = tensor_of("structs");
    struct hvd_options options = HVD_OPTIONS_INIT;
    struct hvd_result result = HVD_RESULT_INIT;
    hvd_handle handle;
    tensor.size = 3;
    WRONG(hvd_allreduce(&tensor, NULL), "HVD_TENSOR_INIT");
    tensor = tensor_of("structs");
    options.size = 0;
    WRONG(hvd_allreduce(&tensor, &options), "HVD_OPTIONS_INIT");
    options = (struct hvd_options)HVD_OPTIONS_INIT;
    EXPECT(hvd_allgather_async(&tensor, NULL, &handle), HVD_OK, "");
    result.size = 1;
    WRONG(hvd_wait(handle, -1, &result), "size");
    EXPECT(hvd_wait(handle, -1, NULL), HVD_OK, "");
    EXPECT(hvd_allgather(&tensor, NULL, NULL), HVD_OK, "");
    tensor.dims = -1;
    WRONG(hvd_allreduce(&tensor, NULL), "dimensions");
    options.set = INT32_MIN;
    tensor = tensor_of("structs");
    EXPECT(hvd_allreduce(&tensor, &options), HVD_ERR_UNKNOWN_SET, "number");
}

static void test_null_pointers(void)
{
    struct hvd_tensor tensor = tensor_of("null");
    WRONG(hvd_allreduce_async(&tensor, NULL, NULL), "callback");
    WRONG(hvd_allreduce(NULL, NULL), "tensor");
    WRONG(hvd_grouped_allreduce(NULL, 2, NULL), "tensor");
    WRONG(hvd_allgather(NULL, NULL, NULL), "tensor");
    WRONG(hvd_broadcast(NULL, 0, NULL), "tensor");
    WRONG(hvd_alltoall(NULL, NULL, NULL, NULL), "tensor");
    WRONG(hvd_reducescatter(NULL, NULL), "tensor");
    WRONG(hvd_join_async(NULL, NULL), "callback");
    WRONG(hvd_add_process_set(NULL, 1, NULL), "number");
    WRONG(hvd_process_set_ranks(0, NULL, 1), "room");
    WRONG(hvd_use_gpu(0, -1), "-1 is not the number of a GPU");
    EXPECT(hvd_use_gpu(7, 0), HVD_ERR_UNKNOWN_SET, "7");
    WRONG(hvd_process_set_ids(NULL, -1), "room");
    WRONG(hvd_timeline_start(NULL, true), "path");
    WRONG(hvd_timeline_start("", true), "path");
    EXPECT(hvd_timeline_stop(), HVD_OK, "");
    hvd_result_free(NULL);
    struct hvd_result result = HVD_RESULT_INIT;
    WRONG(hvd_result_move(NULL, data, 0, NULL), "NULL");
    WRONG(hvd_result_move(&result, data, 4, NULL), "NULL");
    EXPECT(hvd_result_move(&result, NULL, 0, NULL), HVD_OK, "");
    EXPECT(hvd_failure(), HVD_OK, "");
    if (hvd_engine_built(NULL) || hvd_engine_built("") || hvd_engine_built("../gloo"))
        worker_fail("an engine without a name was built in");
}

static void test_types(void)
{
    const int wrong[] = {-1, 13, 99, INT32_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (hvd_type_bytes(wrong[i]) != 0 || hvd_type_name(wrong[i]) != NULL)
            worker_fail("%d is a type", wrong[i]);
    if (hvd_status_text(-9999) == NULL || hvd_status_text(77) == NULL || hvd_error_text() == NULL)
        worker_fail("a text is NULL");
}

static void test_samplers(void)
{
    struct hvd_sampler *sampler = NULL;
    WRONG(hvd_sampler_create(-1, false, 0, &sampler), "examples");
    WRONG(hvd_sampler_create(5, false, 0, NULL), "sampler");
    hvd_sampler_destroy(NULL);
    hvd_sampler_record(NULL, 1);
    hvd_sampler_set_epoch(NULL, 1);
    if (hvd_sampler_count(NULL) != 0 || hvd_sampler_at(NULL, 0) != -1)
        worker_fail("a sampler that is NULL has examples");
    EXPECT(hvd_sampler_create(5, false, 0, &sampler), HVD_OK, "");
    hvd_sampler_record(sampler, INT64_MIN);
    hvd_sampler_record(sampler, INT64_MAX);
    hvd_sampler_set_epoch(sampler, -1);
    int64_t count = hvd_sampler_count(sampler);
    if (hvd_sampler_at(sampler, -1) != -1 || hvd_sampler_at(sampler, count) != -1 ||
        hvd_sampler_at(sampler, INT64_MAX) != -1)
        worker_fail("a sampler has examples out of range");
    hvd_sampler_destroy(sampler);
}

static void test_states(void)
{
    struct hvd_state *state = NULL;
    char name[300];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    hvd_state_destroy(NULL);
    WRONG(hvd_state_create(NULL), "state");
    EXPECT(hvd_state_create(&state), HVD_OK, "");
    WRONG(hvd_state_add(NULL, "x", data, 1), "state");
    WRONG(hvd_state_add(state, NULL, data, 1), "name");
    WRONG(hvd_state_add(state, "", data, 1), "name");
    WRONG(hvd_state_add(state, name, data, 1), "name");
    WRONG(hvd_state_add(state, "x", NULL, 1), "x");
    EXPECT(hvd_state_add(state, "x", data, sizeof data), HVD_OK, "");
    WRONG(hvd_state_add(state, "x", data, 1), "x");
    WRONG(hvd_state_add_sampler(state, "y", NULL), "sampler");
    WRONG(hvd_state_commit(NULL), "state");
    WRONG(hvd_state_check(NULL), "state");
    WRONG(hvd_state_restore(NULL), "state");
    WRONG(hvd_state_sync(NULL), "state");
    WRONG(hvd_elastic_run(NULL, train, NULL), "state");
    WRONG(hvd_elastic_run(state, NULL, NULL), "function");
    EXPECT(hvd_state_restore(state), HVD_OK, "");
    if (hvd_deadline(NULL, 0) != -1 || hvd_deadline(NULL, 100) != -1)
        worker_fail("there is a deadline");
    hvd_state_destroy(state);
}

int main(void)
{
    test_tensors_outside();
    test_others_outside();
    test_init_options();
    struct job job = job_begin();
    test_structs();
    test_null_pointers();
    test_types();
    test_samplers();
    test_states();
    struct hvd_tensor tensor = tensor_of("after all that");
    EXPECT(hvd_allreduce(&tensor, NULL), HVD_OK, "");
    job_end(&job);
    test_tensors_outside();
    test_others_outside();
    return 0;
}
