/* SPDX-License-Identifier: Apache-2.0 */
/* Adasum through hvd.h: fused tensors, process sets, scales and joined ranks, compared with a
 * serial result in long double: adasum [gpu]. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adasum_serial.h"
#include "base/mem.h"
#include "engine/half.h"
#include "job.h"
#include "place.h"
#include "values.h"

enum { ROUNDS = 4 };
static const int64_t sizes[] = {0, 1, 1001, 12001, 7, 3};
enum { SIZES = sizeof sizes / sizeof sizes[0], TYPES = 4, TENSORS = TYPES * SIZES };
static const enum hvd_type types[TYPES] = {HVD_FLOAT32, HVD_FLOAT64, HVD_FLOAT16, HVD_BFLOAT16};
static const double prescale = 0.5, postscale = 3;

struct tensors {
    struct hvd_tensor each[TENSORS]; /* of all types */
    char names[TENSORS][32];
    void *data[TENSORS];
};

struct test {
    struct job job;
    struct place place;
};

static void make(const struct test *test, struct tensors *all)
{
    for (int i = 0; i < TENSORS; i++) {
        enum hvd_type type = types[i % TYPES];
        const int64_t *length = &sizes[i / TYPES];
        snprintf(all->names[i], sizeof all->names[i], "adasum.%d", i);
        size_t bytes = (size_t)*length * hvd_type_bytes(type);
        void *values AUTO_FREE = mem_alloc(bytes);
        values_write(type, test->job.rank, 0, (size_t)*length, values);
        all->data[i] = place_new(&test->place, bytes);
        place_put(&test->place, all->data[i], values, bytes);
        all->each[i] = job_tensor(all->names[i], type, length, all->data[i], all->data[i]);
        all->each[i].device = test->place.device;
    }
}

static void destroy(const struct test *test, struct tensors *all)
{
    for (int i = 0; i < TENSORS; i++)
        place_free(&test->place, all->data[i]);
}

static long double number(const struct hvd_tensor *tensor, const void *data, size_t i)
{
    switch (tensor->type) {
    case HVD_FLOAT16: return (long double)float_of_fp16(((const uint16_t *)data)[i]);
    case HVD_BFLOAT16: return (long double)float_of_bf16(((const uint16_t *)data)[i]);
    case HVD_FLOAT32: return (long double)((const float *)data)[i];
    default: return (long double)((const double *)data)[i];
    }
}

/* For each rank. */
static long double tolerance_of(const struct hvd_tensor *tensor)
{
    switch (tensor->type) {
    case HVD_FLOAT16: return 16 * 0x1p-11L;
    case HVD_BFLOAT16: return 16 * 0x1p-8L;
    case HVD_FLOAT32: return 64 * 0x1p-24L;
    default: return 64 * 0x1p-53L;
    }
}

/* `size` ranks took part, beginning with rank `first`. */
static void check(const struct test *test, const struct hvd_tensor *tensor, int first, int size)
{
    size_t count = (size_t)tensor->shape[0], bytes = hvd_type_bytes(tensor->type);
    void *input AUTO_FREE = mem_array(count, bytes), *output AUTO_FREE = mem_array(count, bytes);
    long double *serial AUTO_FREE = mem_array((size_t)size * count, sizeof *serial);
    for (int rank = 0; rank < size; rank++) {
        values_write((enum hvd_type)tensor->type, first + rank, 0, count, input);
        for (size_t i = 0; i < count; i++)
            serial[(size_t)rank * count + i] = number(tensor, input, i) * prescale;
    }
    adasum_serial(serial, count, size);
    place_get(&test->place, output, tensor->output, count * bytes);
    long double tolerance = size * tolerance_of(tensor);
    for (size_t i = 0; i < count; i++)
        if (fabsl(number(tensor, output, i) - serial[i] * postscale) > tolerance)
            worker_fail("%s of %d ranks: element %zu of %zu is wrong", tensor->name, size, i,
                        count);
}

static struct hvd_options options_of(int32_t set)
{
    struct hvd_options options = HVD_OPTIONS_INIT;
    options.set = set;
    options.op = HVD_ADASUM;
    options.prescale = prescale;
    options.postscale = postscale;
    return options;
}

/* The ranks of the set are those from `first` on. */
static void test_group(const struct test *test, int32_t set, int first)
{
    struct hvd_options options = options_of(set);
    struct tensors all;
    make(test, &all);
    job_expect(hvd_grouped_allreduce(all.each, TENSORS, &options), HVD_OK, "", "a group");
    for (int i = 0; i < TENSORS; i++)
        check(test, &all.each[i], first, test->job.size - first);
    destroy(test, &all);
}

static void test_sets(const struct test *test)
{
    const struct job *job = &test->job;
    for (int first = 1; first < job->size; first++) {
        int32_t ranks[16], set, count = 0;
        for (int rank = first; rank < job->size; rank++)
            ranks[count++] = rank;
        job_expect(hvd_add_process_set(ranks, count, &set), HVD_OK, "", "add");
        if (job->rank >= first)
            test_group(test, set, first);
    }
}

/* Rank 0 has joined, so what the others make is as if it were not there. */
static void test_join(const struct test *test)
{
    const struct job *job = &test->job;
    struct hvd_options options = options_of(0);
    struct tensors all;
    make(test, &all);
    for (int i = 0; i < TENSORS && job->rank > 0; i++) {
        job_expect(hvd_allreduce(&all.each[i], &options), HVD_OK, "", "with a joined rank");
        if (job->size == 2)
            check(test, &all.each[i], 1, 1);
    }
    destroy(test, &all);
    job_expect(hvd_join(NULL, NULL), HVD_OK, "", "join");
}

static void test_bad_calls(const struct job *job)
{
    const int64_t length = 3;
    double data[3] = {1, 2, 3};
    struct hvd_options options = HVD_OPTIONS_INIT;
    struct hvd_tensor tensor = job_tensor("bad", HVD_INT32, &length, data, data);
    options.op = HVD_ADASUM;
    job_expect(hvd_allreduce(&tensor, &options), HVD_ERR_ARGUMENT, "not for int32", "integers");
    tensor.type = HVD_BOOL;
    job_expect(hvd_allreduce(&tensor, &options), HVD_ERR_ARGUMENT, "not for bool", "truth");
    tensor.type = HVD_FLOAT64;
    job_expect(hvd_reducescatter(&tensor, &options), HVD_ERR_ARGUMENT, "sum and average", "parts");
    options.op = job->rank == 0 ? HVD_SUM : HVD_ADASUM;
    job_expect(hvd_allreduce(&tensor, &options), job->size > 1 ? HVD_ERR_MISMATCH : HVD_OK,
               "the reductions differ", "two operations");
}

int main(int argc, char **argv)
{
    struct test test = {.job = job_begin()};
    place_open(&test.place, argc > 1 && strcmp(argv[1], "gpu") == 0, hvd_local_rank());
    place_enter(&test.place);
    for (int i = 0; i < ROUNDS; i++)
        test_group(&test, 0, 0);
    test_sets(&test);
    test_join(&test);
    test_bad_calls(&test.job);
    job_end(&test.job);
    place_close(&test.place);
    return 0;
}
