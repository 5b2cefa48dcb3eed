/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of hvd.h: bad input, mismatches, groups, callbacks, joins, process sets, starting
 * again. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "job.h"

static const int64_t three = 3;

static int reduce(const char *name, enum hvd_type type, const int64_t *length, int32_t set,
                  enum hvd_op op)
{
    double data[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    struct hvd_options options = HVD_OPTIONS_INIT;
    struct hvd_tensor tensor = job_tensor(name, type, length, data, data);
    options.set = set;
    options.op = op;
    return hvd_allreduce(&tensor, &options);
}

static void test_before_init(void)
{
    hvd_handle handle;
    int32_t set;
    job_expect(reduce("x", HVD_FLOAT32, &three, 0, HVD_SUM), HVD_ERR_NOT_INITIALIZED, "hvd_init",
               "before");
    job_expect(hvd_barrier_async(NULL, &handle), HVD_ERR_NOT_INITIALIZED, "hvd_init", "barrier");
    job_expect(hvd_poll(1), HVD_ERR_NOT_INITIALIZED, "hvd_init", "poll");
    job_expect(hvd_wait(1, 0, NULL), HVD_ERR_NOT_INITIALIZED, "hvd_init", "wait");
    job_expect(hvd_add_process_set(&set, 1, &set), HVD_ERR_NOT_INITIALIZED, "hvd_init", "add");
    job_expect(hvd_add_process_sets_mpi(&set, &set), HVD_ERR_NOT_INITIALIZED, "hvd_init", "mpi");
    job_expect(hvd_process_set_size(0), HVD_ERR_NOT_INITIALIZED, "hvd_init", "size");
    if (hvd_rank() != -1 || hvd_is_initialized() || hvd_engine()[0] != '\0')
        worker_fail("the library says that it is initialized");
    job_expect(hvd_shutdown(), HVD_OK, "", "shutdown");
}

static void expect_refused(struct hvd_tensor tensor, const char *part, const char *what)
{
    hvd_handle handle;
    job_expect(hvd_allreduce_async(&tensor, NULL, &handle), HVD_ERR_ARGUMENT, part, what);
}

static void test_bad_tensors(void)
{
    double data[4] = {0};
    const int64_t negative = -1, huge[2] = {INT64_MAX, INT64_MAX};
    struct hvd_tensor good = job_tensor("bad", HVD_FLOAT32, &three, data, data), bad = good;
    char *name AUTO_FREE = mem_alloc(10000001);
    memset(name, 'n', 10000000);
    bad.name = name;
    expect_refused(bad, "more than 1023 bytes", "a name of 10 MB");
    bad.name = "";
    expect_refused(bad, "does not have a name", "an empty name");
    bad.name = NULL;
    expect_refused(bad, "does not have a name", "no name");
    bad = good;
    bad.type = 99;
    expect_refused(bad, "99 is not a type", "an unknown type");
    bad = good;
    bad.shape = &negative;
    expect_refused(bad, "negative", "a negative size");
    bad.shape = NULL;
    expect_refused(bad, "shape", "no shape");
    bad = good;
    bad.shape = huge;
    bad.dims = 2;
    expect_refused(bad, "more elements than memory", "a huge tensor");
    bad.dims = 33;
    expect_refused(bad, "33 dimensions", "many dimensions");
    bad = good;
    bad.input = NULL;
    expect_refused(bad, "input of 'bad' is NULL", "no input");
    bad = good;
    bad.output = NULL;
    expect_refused(bad, "output of 'bad' is NULL", "no output");
    bad.output = (char *)data + 1;
    expect_refused(bad, "not aligned", "an address that is not aligned");
    bad = good;
    bad.size = 0;
    expect_refused(bad, "size of the tensor", "a struct without its size");
    job_expect(hvd_allreduce_async(NULL, NULL, NULL), HVD_ERR_ARGUMENT, "callback", "nothing");
}

static void test_bad_calls(const struct job *job)
{
    double data[16] = {0};
    hvd_handle handle;
    struct hvd_result result = HVD_RESULT_INIT;
    struct hvd_options options = HVD_OPTIONS_INIT;
    struct hvd_tensor tensor = job_tensor("bad", HVD_FLOAT32, &three, data, data), scalar = tensor;
    const int64_t too_many[8] = {2, 2, 2, 2, 2, 2, 2, 2}, negative[8] = {-1};
    scalar.dims = 0;
    options.op = 77;
    job_expect(hvd_allreduce(&tensor, &options), HVD_ERR_ARGUMENT, "77", "an unknown op");
    options.op = HVD_MAX;
    job_expect(hvd_reducescatter(&tensor, &options), HVD_ERR_ARGUMENT, "sum and average", "max");
    job_expect(hvd_reducescatter(&scalar, NULL), HVD_ERR_ARGUMENT, "scalar", "a scalar");
    job_expect(hvd_allgather(&scalar, NULL, &result), HVD_ERR_ARGUMENT, "scalar", "a scalar");
    job_expect(hvd_broadcast(&tensor, job->size, NULL), HVD_ERR_ARGUMENT, "root", "a wrong root");
    job_expect(hvd_broadcast(&tensor, -1, NULL), HVD_ERR_ARGUMENT, "root", "a negative root");
    job_expect(hvd_alltoall(&tensor, too_many, NULL, &result),
               job->size > 1 ? HVD_ERR_ARGUMENT : HVD_OK, "sum of the splits", "splits");
    hvd_result_free(&result);
    job_expect(hvd_alltoall(&tensor, negative, NULL, &result), HVD_ERR_ARGUMENT, "negative",
               "splits");
    options = (struct hvd_options)HVD_OPTIONS_INIT;
    options.set = 99;
    job_expect(hvd_allreduce(&tensor, &options), HVD_ERR_UNKNOWN_SET, "99", "an unknown set");
    job_expect(reduce("bad", HVD_BOOL, &three, 0, HVD_AVERAGE), HVD_ERR_ARGUMENT, "bool", "bool");
    job_expect(hvd_grouped_allreduce(&tensor, 0, NULL), HVD_ERR_ARGUMENT, "not a tensor", "none");
    struct hvd_tensor two[2] = {tensor, tensor};
    job_expect(hvd_grouped_allreduce(two, 2, NULL), HVD_ERR_DUPLICATE_NAME, "twice", "two names");
    job_expect(hvd_poll(123), HVD_ERR_UNKNOWN_HANDLE, "handle", "an unknown handle");
    job_expect(hvd_wait(0, -1, NULL), HVD_ERR_UNKNOWN_HANDLE, "handle", "the handle 0");
    job_expect(hvd_barrier_async(NULL, NULL), HVD_ERR_ARGUMENT, "callback", "no handle");
    job_expect(hvd_process_set_size(-5), HVD_ERR_UNKNOWN_SET, "-5", "a negative set");
    job_expect(hvd_remove_process_set(0), HVD_ERR_ARGUMENT, "set 0", "removing the set 0");
    job_expect(hvd_process_set_ids(NULL, 5), HVD_ERR_ARGUMENT, "room", "no room");
    (void)handle;
}

static void test_bad_sets(const struct job *job)
{
    int32_t set = -1;
    const int32_t twice[2] = {0, 0}, outside = job->size;
    job_expect(hvd_add_process_set(twice, 2, &set), HVD_ERR_ARGUMENT,
               job->size > 1 ? "occurs twice" : "1 to 1", "a rank twice");
    job_expect(hvd_add_process_set(&outside, 1, &set), HVD_ERR_ARGUMENT, "not in the job",
               "a rank outside");
    job_expect(hvd_add_process_set(NULL, 1, &set), HVD_ERR_ARGUMENT, "ranks", "no list");
    job_expect(hvd_add_process_set(twice, 0, &set), HVD_ERR_ARGUMENT, "ranks", "an empty list");
    job_expect(hvd_add_process_sets_mpi(NULL, &set), HVD_ERR_ARGUMENT, "NULL", "no communicator");
    job_expect(hvd_add_process_sets_mpi(twice, NULL), HVD_ERR_ARGUMENT, "number", "no room");
    if (strcmp(hvd_engine(), "mpi") != 0)
        job_expect(hvd_add_process_sets_mpi(twice, &set), HVD_ERR_UNSUPPORTED, "--controller mpi",
                   "a communicator without MPI");
}

/* The last rank differs. The library stays usable. */
static void test_mismatches(const struct job *job)
{
    const int64_t four = 4;
    float data[4] = {1, 1, 1, 1};
    bool last = job->rank == job->size - 1;
    struct hvd_options options = HVD_OPTIONS_INIT;
    struct hvd_tensor tensor = job_tensor("m", HVD_FLOAT32, &three, data, data);
    int expected = job->size > 1 ? HVD_ERR_MISMATCH : HVD_OK;
    job_expect(reduce("t", last ? HVD_FLOAT64 : HVD_FLOAT32, &three, 0, HVD_SUM), expected,
               "allreduce 't': the types differ: float", "types");
    job_expect(reduce("s", HVD_FLOAT32, last ? &four : &three, 0, HVD_SUM), expected, "[3]",
               "shapes");
    job_expect(reduce("o", HVD_FLOAT32, &three, 0, last ? HVD_MIN : HVD_MAX), expected,
               "max on rank", "reductions");
    options.prescale = last ? 2 : 1;
    job_expect(hvd_allreduce(&tensor, &options), expected, "2 and 1", "scales");
    job_expect(last ? hvd_broadcast(&tensor, 0, NULL) : hvd_allreduce(&tensor, NULL), expected,
               "the operations differ", "kinds");
    job_expect(hvd_broadcast(&tensor, last && job->size > 1 ? 1 : 0, NULL), expected,
               "the roots differ", "roots");
    job_expect(reduce("t", HVD_FLOAT32, &three, 0, HVD_SUM), HVD_OK, "", "after the mismatches");
}

/* The tensors of odd ranks are side by side, and those of even ranks are not. */
static void test_groups(const struct job *job)
{
    enum { TENSORS = 5, LENGTH = 3, STRIDE = 4 };
    const int stride = job->rank % 2 == 0 ? STRIDE : LENGTH;
    float data[TENSORS * STRIDE];
    struct hvd_tensor tensors[TENSORS];
    static const char *const names[TENSORS] = {"g0", "g1", "g2", "g3", "g4"};
    struct hvd_options options = HVD_OPTIONS_INIT;
    options.op = HVD_SUM;
    options.prescale = 2;
    options.postscale = 3;
    for (int i = 0; i < TENSORS; i++) {
        float *at = data + i * stride;
        for (int k = 0; k < LENGTH; k++)
            at[k] = (float)(i + k);
        tensors[i] = job_tensor(names[i], HVD_FLOAT32, &three, at, at);
    }
    job_expect(hvd_grouped_allreduce(tensors, TENSORS, &options), HVD_OK, "", "a group");
    for (int i = 0; i < TENSORS; i++)
        for (int k = 0; k < LENGTH; k++)
            if (data[i * stride + k] != (float)(6 * (i + k) * job->size))
                worker_fail("group: tensor %d is wrong", i);
    tensors[2].type = job->rank == 0 ? HVD_INT32 : HVD_FLOAT32;
    job_expect(hvd_grouped_allreduce(tensors, TENSORS, &options),
               job->size > 1 ? HVD_ERR_MISMATCH : HVD_OK, "'g2'", "a group with a mismatch");
}

/* Rank r gathers r + i rows of tensor i, and scatters rows of ones. */
static void test_other_groups(const struct job *job)
{
    enum { TENSORS = 3, ROWS = 40 };
    static const char *const names[TENSORS] = {"h0", "h1", "h2"};
    static const enum hvd_type types[TENSORS] = {HVD_UINT8, HVD_FLOAT64, HVD_INT32};
    char bytes[ROWS * sizeof(double)];
    int64_t rows[TENSORS];
    const int64_t all = ROWS;
    int32_t ones[ROWS], parts[TENSORS][ROWS];
    struct hvd_tensor tensors[TENSORS];
    struct hvd_result results[TENSORS] = {HVD_RESULT_INIT, HVD_RESULT_INIT, HVD_RESULT_INIT};
    struct hvd_options options = HVD_OPTIONS_INIT;
    memset(bytes, 65 + job->rank, sizeof bytes);
    for (int i = 0; i < TENSORS; i++) {
        rows[i] = job->rank + i;
        tensors[i] = job_tensor(names[i], types[i], &rows[i], bytes, NULL);
    }
    job_expect(hvd_grouped_allgather(tensors, TENSORS, NULL, results), HVD_OK, "", "allgather");
    for (int i = 0; i < TENSORS; i++) {
        const char *at = results[i].data;
        for (int rank = 0; rank < job->size; rank++)
            for (size_t k = 0; k < (size_t)(rank + i) * hvd_type_bytes(types[i]); k++)
                if (*at++ != (char)(65 + rank))
                    worker_fail("a group of allgathers: tensor %d is wrong", i);
        hvd_result_free(&results[i]);
    }
    options.op = HVD_SUM;
    for (int i = 0; i < ROWS; i++)
        ones[i] = 1;
    for (int i = 0; i < TENSORS; i++)
        tensors[i] = job_tensor(names[i], HVD_INT32, &all, ones, parts[i]);
    job_expect(hvd_grouped_reducescatter(tensors, TENSORS, &options), HVD_OK, "", "scatter");
    int64_t own = ROWS / job->size + (job->rank < ROWS % job->size ? 1 : 0);
    for (int i = 0; i < TENSORS; i++)
        for (int64_t k = 0; k < own; k++)
            if (parts[i][k] != job->size)
                worker_fail("a group of reducescatters: tensor %d is wrong", i);
}

struct called {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int count, status;
    hvd_handle handle;
};

static void on_complete(void *context, hvd_handle handle, int status)
{
    struct called *called = context;
    pthread_mutex_lock(&called->lock);
    called->count++;
    called->status = status;
    called->handle = handle;
    pthread_cond_signal(&called->changed);
    pthread_mutex_unlock(&called->lock);
}

static void wait_for_calls(struct called *called, int count)
{
    pthread_mutex_lock(&called->lock);
    while (called->count < count)
        pthread_cond_wait(&called->changed, &called->lock);
    pthread_mutex_unlock(&called->lock);
}

static void test_callbacks(void)
{
    struct called called = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    struct hvd_options options = HVD_OPTIONS_INIT;
    float data[3] = {1, 2, 3};
    struct hvd_tensor tensor = job_tensor("called", HVD_FLOAT32, &three, data, data);
    options.callback = on_complete;
    options.context = &called;
    job_expect(hvd_allreduce_async(&tensor, &options, NULL), HVD_OK, "", "with a callback");
    wait_for_calls(&called, 1);
    if (called.status != HVD_OK || called.handle == 0)
        worker_fail("the callback got the status %d", called.status);
    hvd_handle handle;
    tensor.name = "polled";
    job_expect(hvd_allreduce_async(&tensor, &options, &handle), HVD_OK, "", "with both");
    int status = HVD_IN_PROGRESS;
    while (status == HVD_IN_PROGRESS)
        status = hvd_poll(handle);
    job_expect(status, HVD_OK, "", "poll");
    job_expect(hvd_wait(handle, 0, NULL), HVD_OK, "", "wait");
    job_expect(hvd_wait(handle, 0, NULL), HVD_ERR_UNKNOWN_HANDLE, "handle", "wait again");
    wait_for_calls(&called, 2);
}

static void test_waits(const struct job *job)
{
    hvd_handle handle, other;
    job_expect(hvd_barrier(NULL), HVD_OK, "", "barrier");
    if (job->rank == 0 && job->size > 1) {
        job_expect(hvd_barrier_async(NULL, &handle), HVD_OK, "", "barrier_async");
        job_expect(hvd_barrier_async(NULL, &other), HVD_ERR_DUPLICATE_NAME, "barrier", "two");
        job_expect(hvd_wait(handle, 10, NULL), HVD_ERR_TIMEOUT, "time limit", "a short wait");
        job_expect(hvd_poll(handle), HVD_IN_PROGRESS, "", "poll");
        int32_t value = 1; /* tells the others to come */
        const int64_t one = 1;
        struct hvd_tensor tensor = job_tensor("come", HVD_INT32, &one, &value, &value);
        job_expect(hvd_broadcast(&tensor, 0, NULL), HVD_OK, "", "broadcast");
        job_expect(hvd_wait(handle, -1, NULL), HVD_OK, "", "wait");
    } else if (job->size > 1) {
        int32_t value = 0;
        const int64_t one = 1;
        struct hvd_tensor tensor = job_tensor("come", HVD_INT32, &one, NULL, &value);
        job_expect(hvd_broadcast(&tensor, 0, NULL), HVD_OK, "", "broadcast");
        job_expect(hvd_barrier(NULL), HVD_OK, "", "barrier");
    }
}

/* Each rank has more tensors than the rank before it. */
static void test_join(const struct job *job)
{
    struct hvd_options options = HVD_OPTIONS_INIT;
    int last = -2;
    options.op = HVD_SUM;
    for (int step = 0; step < 3 * (job->rank + 1); step++) {
        float data[3] = {1, 1, 1};
        struct hvd_tensor tensor = job_tensor("joined", HVD_FLOAT32, &three, data, data);
        job_expect(hvd_allreduce(&tensor, &options), HVD_OK, "", "allreduce");
        if (data[2] != (float)(job->size - step / 3))
            worker_fail("step %d: the sum is %g", step, (double)data[2]);
    }
    if (job->rank == job->size - 1 && job->size > 1) {
        const float data[3] = {0};
        struct hvd_result result = HVD_RESULT_INIT;
        struct hvd_tensor tensor = job_tensor("all", HVD_FLOAT32, &three, data, NULL);
        job_expect(hvd_allgather(&tensor, NULL, &result), HVD_ERR_MISMATCH, "joined", "allgather");
    }
    job_expect(hvd_join(NULL, &last), HVD_OK, "", "join");
    if (last != job->size - 1)
        worker_fail("join: the last rank is %d", last);
}

static void test_sets(const struct job *job)
{
    int32_t sets[8], known[16];
    for (int first = 0; first < job->size; first++) { /* the set of all ranks from `first` */
        int32_t ranks[16], count = 0;
        for (int rank = job->size - 1; rank >= first; rank--)
            ranks[count++] = rank;
        int status = hvd_add_process_set(ranks, count, &sets[first]);
        job_expect(status, first == 0 ? HVD_ERR_SET_EXISTS : HVD_OK, "exists", "add");
        if (hvd_process_set_size(sets[first]) != count ||
            hvd_process_set_ranks(sets[first], known, 16) != count || known[0] != first)
            worker_fail("the set %d has other ranks", sets[first]);
        if (job->rank < first) {
            job_expect(hvd_process_set_rank(sets[first]), HVD_ERR_NOT_MEMBER, "member", "rank");
            job_expect(reduce("n", HVD_FLOAT32, &three, sets[first], HVD_SUM), HVD_ERR_NOT_MEMBER,
                       "member", "not a member");
        } else {
            double data[3] = {1, 1, 1};
            struct hvd_options options = HVD_OPTIONS_INIT;
            struct hvd_tensor tensor = job_tensor("set", HVD_FLOAT64, &three, data, data);
            options.set = sets[first];
            options.op = HVD_SUM;
            job_expect(hvd_allreduce(&tensor, &options), HVD_OK, "", "allreduce in a set");
            if (data[0] != count || hvd_process_set_rank(sets[first]) != job->rank - first)
                worker_fail("the sum of %d ranks is %g", count, data[0]);
        }
    }
    if (hvd_process_set_ids(known, 16) != job->size || known[0] != 0)
        worker_fail("the list of sets is wrong");
    int32_t other = job->rank % 2;
    if (job->size > 2)
        job_expect(hvd_add_process_set(&other, 1, &other), HVD_ERR_MISMATCH, "ranks differ",
                   "different lists");
    for (int first = 1; first < job->size; first++) {
        job_expect(hvd_remove_process_set(sets[first]), HVD_OK, "", "remove");
        job_expect(reduce("r", HVD_FLOAT32, &three, sets[first], HVD_SUM), HVD_ERR_UNKNOWN_SET,
                   "number", "a removed set");
        job_expect(hvd_remove_process_set(sets[first]), HVD_ERR_UNKNOWN_SET, "number", "again");
    }
}

/* The parent has other threads, which the child does not have. */
static void test_forked_child(void)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        hvd_handle handle;
        bool right = !hvd_is_initialized() && hvd_rank() == -1 && hvd_init(NULL) != HVD_OK &&
                     hvd_barrier_async(NULL, &handle) == HVD_ERR_NOT_INITIALIZED &&
                     hvd_shutdown() == HVD_OK;
        _exit(right ? 0 : 1);
    }
    waitpid(child, &status, 0);
    if (status != 0)
        worker_fail("a forked child uses the library");
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 1;
    struct job job = {-1, -1};
    test_before_init();
    for (int i = 0; i < rounds; i++) {
        job = job_begin();
        job_expect(hvd_init(NULL), HVD_OK, "", "a second init");
        test_bad_tensors();
        test_bad_calls(&job);
        test_bad_sets(&job);
        test_mismatches(&job);
        test_groups(&job);
        test_other_groups(&job);
        test_callbacks();
        test_waits(&job);
        test_join(&job);
        test_sets(&job);
        test_forked_child();
        if (i + 1 < rounds)
            job_expect(hvd_shutdown(), HVD_OK, "", "shutdown");
    }
    job_end(&job);
    test_before_init();
    return 0;
}
