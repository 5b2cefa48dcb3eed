/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libhvd with tensors on a GPU, beside the property tests: gpu CASE [NUMBER].
 *
 *   rules    what is refused, and that the library stays usable
 *   streams  an operation waits for the stream that computes its input
 *   join     a rank that has joined gives zeros
 *   early    the same before its first tensor: then it must say which GPU it has
 *   sets     process sets that share a rank, at the same time
 *   refused  rank 1 has no usable NCCL at first
 *   broken   the status NUMBER ends a step; after another hvd_init() everything works again
 *   staged   the same with Adasum, which goes through host memory
 *   killed   rank NUMBER % size is killed while all submit
 *   elastic  rank 1 is killed once, under hvd_elastic_run()
 */
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "job.h"
#include "place.h"
#include "values.h"

enum { TENSORS = 12, STEPS = 1000000 };
static const int64_t length = 5000;

struct test {
    struct job job;
    struct place place;
    void *stream;
    float *data; /* TENSORS of them, on the GPU */
    uint64_t number;
};

static void fill(const struct test *test, float *to, int64_t count, float value)
{
    float *values AUTO_FREE = mem_array((size_t)count, sizeof *values);
    for (int64_t i = 0; i < count; i++)
        values[i] = value;
    place_put(&test->place, to, values, (size_t)count * sizeof *values);
}

/* The first element that is not `value`; -1: there is none. */
static int64_t find_other(const struct test *test, const float *from, int64_t count, float value)
{
    float *values AUTO_FREE = mem_array((size_t)count, sizeof *values);
    place_get(&test->place, values, from, (size_t)count * sizeof *values);
    for (int64_t i = 0; i < count; i++)
        if (values[i] < value || values[i] > value)
            return i;
    return -1;
}

static void expect_all(const struct test *test, const float *from, int64_t count, float value,
                       const char *what)
{
    int64_t other = find_other(test, from, count, value);
    if (other >= 0)
        worker_fail("%s: element %lld is not %g", what, (long long)other, (double)value);
}

/* Waits for the stream first. */
static void expect_nan(const struct test *test, const float *from, int64_t count, const char *what)
{
    float *values AUTO_FREE = mem_array((size_t)count, sizeof *values);
    place_sync(&test->place, test->stream);
    place_get(&test->place, values, from, (size_t)count * sizeof *values);
    for (int64_t i = 0; i < count; i++)
        if (!isnan(values[i]))
            worker_fail("%s: element %lld is %g after a product with a NaN", what, (long long)i,
                        (double)values[i]);
}

static struct hvd_tensor tensor_of(const struct test *test, const char *name, float *data)
{
    struct hvd_tensor tensor = job_tensor(name, HVD_FLOAT32, &length, data, data);
    tensor.stream = test->stream;
    return tensor;
}

/* A step of several tensors. Returns the first status that is not HVD_OK. */
static int step_with(const struct test *test, int32_t set, enum hvd_op op, int count)
{
    struct hvd_options options = HVD_OPTIONS_INIT;
    hvd_handle handles[TENSORS];
    int made = 0, status = HVD_OK;
    options.set = set;
    options.op = op;
    for (; made < count && status == HVD_OK; made++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", made);
        struct hvd_tensor tensor = tensor_of(test, name, test->data + made * length);
        status = hvd_allreduce_async(&tensor, &options, &handles[made]);
        if (status != HVD_OK)
            break;
    }
    for (int i = 0; i < made; i++) {
        int one = hvd_wait(handles[i], -1, NULL);
        status = status == HVD_OK ? one : status;
    }
    place_sync(&test->place, test->stream); /* with HOROVOD_ENABLE_ASYNC_COMPLETION */
    return status;
}

static int step(const struct test *test, int32_t set, int count)
{
    return step_with(test, set, HVD_AVERAGE, count);
}

/* An average of equal values changes nothing. */
static void check_step(const struct test *test)
{
    fill(test, test->data, TENSORS * length, 3);
    job_expect(step(test, 0, TENSORS), HVD_OK, "", "a step");
    expect_all(test, test->data, TENSORS * length, 3, "a step");
}

/* What is multiplied by no number is no number, as in host memory. */
static void check_nan(const struct test *test, double prescale, double postscale, enum hvd_op op)
{
    const int size = test->job.size;
    const int64_t part = length / size + (test->job.rank < length % size);
    struct hvd_options options = HVD_OPTIONS_INIT;
    struct hvd_tensor tensor = tensor_of(test, "nan", test->data);
    options.op = op;
    options.prescale = prescale;
    options.postscale = postscale;
    fill(test, test->data, length, 1);
    job_expect(hvd_allreduce(&tensor, &options), HVD_OK, "", "a factor that is not a number");
    expect_nan(test, test->data, length, "allreduce");
    if (op != HVD_SUM && op != HVD_AVERAGE)
        return;
    fill(test, test->data, 2 * length, 1);
    tensor.output = test->data + length;
    job_expect(hvd_reducescatter(&tensor, &options), HVD_OK, "", "the same in parts");
    expect_nan(test, tensor.output, part, "reducescatter");
}

static void run_rules(struct test *test)
{
    int64_t one = 1;
    float *host AUTO_FREE = mem_array((size_t)length, sizeof *host);
    struct hvd_options options = HVD_OPTIONS_INIT;
    struct hvd_tensor tensor = tensor_of(test, "x", test->data);
    if (hvd_nccl_version() < 21300 || !hvd_engine_built("nccl"))
        worker_fail("NCCL has the version %d", hvd_nccl_version());
    tensor.output = host;
    job_expect(hvd_allreduce(&tensor, NULL), HVD_ERR_ARGUMENT, "the output is in host memory",
               "two places");
    tensor.output = test->data;
    tensor.device = test->place.device + 1;
    job_expect(hvd_allreduce(&tensor, NULL), HVD_ERR_ARGUMENT, "and not in GPU", "another GPU");
    tensor.device = HVD_DEVICE_OF_MEMORY;
    tensor.type = HVD_INT16;
    options.op = HVD_SUM;
    job_expect(hvd_allreduce(&tensor, &options), HVD_ERR_UNSUPPORTED, "cannot reduce int16",
               "int16");
    tensor.type = HVD_INT32;
    options.prescale = 2;
    job_expect(hvd_allreduce(&tensor, &options), HVD_ERR_UNSUPPORTED, "cannot scale integers",
               "scaled int32");
    tensor = tensor_of(test, "y", test->data);
    if (test->job.rank == 0)
        tensor.input = tensor.output = host;
    if (test->job.size > 1)
        job_expect(hvd_allreduce(&tensor, NULL), HVD_ERR_MISMATCH, "the kinds of memory differ",
                   "GPU and host");
    int value = test->job.rank;
    struct hvd_tensor scalar = job_tensor("z", HVD_INT32, &one, &value, &value);
    options = (struct hvd_options)HVD_OPTIONS_INIT;
    options.op = HVD_MAX;
    job_expect(hvd_allreduce(&scalar, &options), HVD_OK, "", "host memory in the same set");
    if (value != test->job.size - 1)
        worker_fail("the maximum is %d", value);
    check_nan(test, NAN, 1, HVD_SUM);
    check_nan(test, 1, NAN, HVD_SUM);
    check_nan(test, 1, NAN, HVD_AVERAGE);
    check_nan(test, 1, NAN, HVD_MAX);
    check_step(test);
}

/* The stream is slow, and computes the input after the submission. */
static void run_streams(struct test *test)
{
    size_t bytes = (size_t)length * sizeof(float);
    float *ready = place_new(&test->place, bytes), *other = test->data + length;
    fill(test, ready, length, (float)(test->job.rank + 1));
    for (int i = 0; i < 10; i++) {
        hvd_handle handle;
        struct hvd_options options = HVD_OPTIONS_INIT;
        struct hvd_tensor tensor = tensor_of(test, "x", test->data);
        options.op = HVD_SUM;
        tensor.output = other;
        fill(test, test->data, length, -1);
        place_delay(&test->place, test->stream);
        place_copy(&test->place, test->stream, test->data, ready, bytes);
        job_expect(hvd_allreduce_async(&tensor, &options, &handle), HVD_OK, "", "submit");
        job_expect(hvd_wait(handle, -1, NULL), HVD_OK, "", "wait");
        place_sync(&test->place, test->stream);
        expect_all(test, other, length, (float)(test->job.size * (test->job.size + 1) / 2), "sum");
    }
    place_free(&test->place, ready);
}

static void run_join(struct test *test)
{
    int last = -1;
    struct hvd_options options = HVD_OPTIONS_INIT;
    check_step(test);
    options.op = HVD_SUM;
    fill(test, test->data, length, 1);
    if (test->job.rank > 0) {
        struct hvd_tensor tensor = tensor_of(test, "alone", test->data);
        job_expect(hvd_allreduce(&tensor, &options), HVD_OK, "", "without rank 0");
        place_sync(&test->place, test->stream);
        expect_all(test, test->data, length, (float)(test->job.size - 1), "without rank 0");
    }
    job_expect(hvd_join(NULL, &last), HVD_OK, "", "join");
    check_step(test);
}

/* Rank 0 joins, and the others try an operation on a GPU. */
static void join_early(struct test *test, int wanted, const char *part)
{
    int last = -1;
    fill(test, test->data, length, 1);
    if (test->job.rank > 0) {
        struct hvd_options options = HVD_OPTIONS_INIT;
        struct hvd_tensor tensor = tensor_of(test, "early", test->data);
        options.op = HVD_SUM;
        job_expect(hvd_allreduce(&tensor, &options), wanted, part, "before rank 0 has a tensor");
        place_sync(&test->place, test->stream);
        expect_all(test, test->data, length, wanted == HVD_OK ? (float)(test->job.size - 1) : 1,
                   "before rank 0 has a tensor");
    }
    job_expect(hvd_join(NULL, &last), HVD_OK, "", "join");
}

static void run_early(struct test *test)
{
    int device = test->place.device;
    if (test->job.size > 1)
        join_early(test, HVD_ERR_UNSUPPORTED, "rank 0 cannot use NCCL: it has joined");
    for (int i = 0; i < 2; i++) /* then it has the GPU of its tensors */
        if (hvd_use_gpu(0, device + i) != device)
            worker_fail("the GPU is not %d", device);
    join_early(test, HVD_OK, "");
    check_step(test);
}

static void run_sets(struct test *test)
{
    const int32_t low_ranks[] = {0, 1}, high_ranks[] = {1, 2};
    int32_t low, high;
    float *other = place_new(&test->place, TENSORS * (size_t)length * sizeof(float));
    job_expect(hvd_add_process_set(low_ranks, 2, &low), HVD_OK, "", "add");
    job_expect(hvd_add_process_set(high_ranks, 2, &high), HVD_OK, "", "add");
    for (int i = 0; i < 50; i++) {
        hvd_handle handle = 0;
        struct hvd_options options = HVD_OPTIONS_INIT;
        struct hvd_tensor tensor = tensor_of(test, "high", other);
        options.set = high;
        if (test->job.rank > 0)
            job_expect(hvd_allreduce_async(&tensor, &options, &handle), HVD_OK, "", "high");
        if (test->job.rank < 2)
            job_expect(step(test, low, TENSORS), HVD_OK, "", "low");
        if (test->job.rank > 0)
            job_expect(hvd_wait(handle, -1, NULL), HVD_OK, "", "high");
    }
    job_expect(hvd_remove_process_set(low), HVD_OK, "", "remove");
    check_step(test);
    place_free(&test->place, other);
}

static void run_refused(struct test *test)
{
    job_expect(step(test, 0, 1), HVD_ERR_UNSUPPORTED, "rank 1 cannot use NCCL", "without NCCL");
    check_step(test);
}

/* The rank with the fault gets the status; the others may hear of it as a lost rank. If it only
 * hangs, the time limit of another rank may be over first. */
static void break_with(struct test *test, enum hvd_op op)
{
    int wanted = -(int)test->number, status = HVD_OK;
    for (int i = 0; i < 20 && status == HVD_OK; i++)
        status = step_with(test, 0, op, TENSORS);
    printf("the step with the fault: status %d\n", status);
    if (test->job.rank == 1 && wanted != HVD_ERR_TIMEOUT)
        job_expect(status, wanted, "", "the step with the fault");
    else if (status != wanted && status != HVD_ERR_PEER_LOST)
        worker_fail("the step with the fault of rank 1: status %d: %s", status, hvd_error_text());
    job_expect(hvd_shutdown(), HVD_OK, "", "hvd_shutdown");
    job_expect(hvd_init(NULL), HVD_OK, "", "hvd_init");
    check_step(test);
}

static void run_broken(struct test *test)
{
    break_with(test, HVD_AVERAGE);
}

static void run_staged(struct test *test)
{
    break_with(test, HVD_ADASUM);
}

static void *die_soon(void *argument)
{
    uint64_t number = *(const uint64_t *)argument, ms = values_seed(7, number) % 60;
    nanosleep(&(struct timespec){.tv_nsec = (int64_t)ms * 1000000}, NULL);
    raise(SIGKILL);
    return NULL;
}

static void die_in_time(struct test *test)
{
    pthread_t thread;
    if (test->number % (uint64_t)test->job.size == (uint64_t)test->job.rank)
        pthread_create(&thread, NULL, die_soon, &test->number);
}

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void run_killed(struct test *test)
{
    int status = HVD_OK;
    int64_t before_us = 0;
    die_in_time(test);
    for (int i = 0; i < STEPS && status == HVD_OK; i++) {
        before_us = now_us();
        status = step(test, 0, 1 + i % TENSORS);
    }
    printf("the last step took %lld us\n", (long long)(now_us() - before_us));
    job_expect(status, HVD_ERR_PEER_LOST, "", "the step in which a rank died");
    job_expect(hvd_failure(), HVD_ERR_PEER_LOST, "", "hvd_failure");
    hvd_handle handle;
    job_expect(hvd_barrier_async(NULL, &handle), HVD_ERR_PEER_LOST, "", "a later call");
}

/* The state is the number of the step, which the host has. */
static int train(struct hvd_state *state, void *context)
{
    struct test *test = context;
    test->job = (struct job){hvd_rank(), hvd_size()};
    while (test->number < 200) {
        float sum = (float)(test->job.size * (test->job.size + 1) / 2);
        fill(test, test->data, TENSORS * length, (float)(test->job.rank + 1));
        int status = step_with(test, 0, HVD_SUM, TENSORS);
        if (status == HVD_OK) {
            bool right = find_other(test, test->data, TENSORS * length, sum) < 0;
            test->number++;
            status = hvd_state_commit(state);
            if (status != HVD_ERR_PEER_LOST && !right)
                worker_fail("a wrong step was committed");
        }
        if (status != HVD_OK)
            return status;
    }
    return HVD_OK;
}

static void run_elastic(struct test *test)
{
    struct hvd_state *state = NULL;
    const char *folder = getenv("HVD_TEST_ONCE"); /* the first process that makes it dies */
    pthread_t thread;
    uint64_t soon = test->number;
    if (test->job.rank == 1 && folder != NULL && mkdir(folder, 0700) == 0)
        pthread_create(&thread, NULL, die_soon, &soon);
    test->number = 0;
    job_expect(hvd_state_create(&state), HVD_OK, "", "state");
    job_expect(hvd_state_add(state, "step", &test->number, sizeof test->number), HVD_OK, "", "add");
    job_expect(hvd_elastic_run(state, train, test), HVD_OK, "", "hvd_elastic_run");
    hvd_state_destroy(state);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(struct test *test);
    } cases[] = {{"rules", run_rules},    {"streams", run_streams}, {"join", run_join},
                 {"early", run_early},    {"sets", run_sets},       {"refused", run_refused},
                 {"broken", run_broken},  {"staged", run_staged},   {"killed", run_killed},
                 {"elastic", run_elastic}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (argc < 2 || strcmp(argv[1], cases[i].name) != 0)
            continue;
        struct test test = {.number = argc > 2 ? strtoull(argv[2], NULL, 10) : 0};
        signal(SIGTERM, SIG_IGN); /* from the launcher, when it sees a rank that has died */
        test.job = job_begin();
        place_open(&test.place, true, hvd_local_rank());
        place_enter(&test.place);
        test.stream = place_stream(&test.place);
        test.data = place_new(&test.place, TENSORS * (size_t)length * sizeof(float));
        cases[i].run(&test);
        job_end(&test.job);
        if (place_allocations(&test.place) > 1)
            worker_fail("%ld allocations are left", place_allocations(&test.place) - 1);
        place_stream_end(&test.place, test.stream);
        place_free(&test.place, test.data);
        place_close(&test.place);
        return 0;
    }
    worker_fail("usage: gpu CASE [NUMBER]");
}
