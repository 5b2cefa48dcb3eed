/* SPDX-License-Identifier: Apache-2.0 */
/* Adasum for sets of 1 to 9 ranks. Each rank is a thread, with an engine that only copies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>
#include <pthread.h>

#include "../../engine/adasum_serial.h"
#include "base/mem.h"
#include "engine/adasum.h"
#include "engine/half.h"

enum { RANKS_MAX = 9, TENSORS = 6 };
static const size_t counts[TENSORS] = {7, 0, 1, 100, 1, 30};

/* What a rank shows to the others during an alltoallv. */
struct engine_world {
    pthread_barrier_t barrier;
    int size;
    struct {
        const char *in;
        const size_t *send;
    } ranks[RANKS_MAX];
};

struct engine_comm {
    struct engine_world *world;
    int rank;
    void *data;
    enum hvd_type type;
    const size_t *counts;
    size_t tensors;
    enum hvd_status status;
};

static enum hvd_status copy_parts(struct engine_comm *comm, const void *in, const size_t *send,
                                  void *out, const size_t *receive, int64_t timeout_ms,
                                  struct error *err)
{
    struct engine_world *world = comm->world;
    char *to = out;
    (void)timeout_ms, (void)err;
    world->ranks[comm->rank].in = in;
    world->ranks[comm->rank].send = send;
    pthread_barrier_wait(&world->barrier);
    enum hvd_status status = HVD_OK;
    for (int from = 0; from < world->size; from++) {
        const char *at = world->ranks[from].in;
        for (int i = 0; i < comm->rank; i++)
            at += world->ranks[from].send[i];
        if (world->ranks[from].send[comm->rank] != receive[from])
            status = HVD_ERR_ENGINE;
        else if (receive[from] > 0)
            memcpy(to, at, receive[from]);
        to += receive[from];
    }
    pthread_barrier_wait(&world->barrier);
    return status;
}

static enum hvd_status refuse(struct engine_comm *comm, const void *in, const size_t *send,
                              void *out, const size_t *receive, int64_t timeout_ms,
                              struct error *err)
{
    (void)timeout_ms, (void)comm, (void)in, (void)send, (void)out, (void)receive;
    error_set(err, "rank 1 is gone");
    return HVD_ERR_PEER_LOST;
}

static const struct engine copying = {.alltoallv = copy_parts}, failing = {.alltoallv = refuse};

static void *run_rank(void *argument)
{
    struct engine_comm *comm = argument;
    struct error err = ERROR_INIT;
    struct adasum_job job = {&copying, comm, comm->rank, comm->world->size, comm->type};
    comm->status = adasum_run(&job, comm->data, comm->counts, comm->tensors, &err);
    return NULL;
}

/* `data` has the vectors of all ranks, of which each has `bytes` bytes. */
static void run_all(int size, enum hvd_type type, void *data, size_t bytes, const size_t *lengths,
                    size_t tensors)
{
    struct engine_world world = {.size = size};
    struct engine_comm comms[RANKS_MAX];
    pthread_t threads[RANKS_MAX];
    pthread_barrier_init(&world.barrier, NULL, (unsigned)size);
    for (int i = 0; i < size; i++) {
        comms[i] = (struct engine_comm){.world = &world,
                                        .rank = i,
                                        .data = (char *)data + (size_t)i * bytes,
                                        .type = type,
                                        .counts = lengths,
                                        .tensors = tensors};
        assert_int_equal(pthread_create(&threads[i], NULL, run_rank, &comms[i]), 0);
    }
    for (int i = 0; i < size; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&world.barrier);
    for (int i = 0; i < size; i++) {
        assert_int_equal(comms[i].status, HVD_OK);
        assert_memory_equal(data, (char *)data + (size_t)i * bytes, bytes);
    }
}

/* From -1 to 1, different for each rank. */
static double value_of(int rank, size_t i)
{
    return sin((double)(rank + 1) * 12.9898 + (double)i * 78.233);
}

static size_t sum(const size_t *lengths, size_t tensors)
{
    size_t total = 0;
    for (size_t i = 0; i < tensors; i++)
        total += lengths[i];
    return total;
}

static double get(enum hvd_type type, const void *data, size_t i)
{
    switch (type) {
    case HVD_FLOAT16: return (double)float_of_fp16(((const uint16_t *)data)[i]);
    case HVD_BFLOAT16: return (double)float_of_bf16(((const uint16_t *)data)[i]);
    case HVD_FLOAT32: return (double)((const float *)data)[i];
    default: return ((const double *)data)[i];
    }
}

static void put(enum hvd_type type, void *data, size_t i, double value)
{
    switch (type) {
    case HVD_FLOAT16: ((uint16_t *)data)[i] = fp16_of_float((float)value); break;
    case HVD_BFLOAT16: ((uint16_t *)data)[i] = bf16_of_float((float)value); break;
    case HVD_FLOAT32: ((float *)data)[i] = (float)value; break;
    default: ((double *)data)[i] = value;
    }
}

static const struct {
    enum hvd_type type;
    size_t bytes;
    long double tolerance; /* for each rank */
} types[] = {
    {HVD_FLOAT16, 2, 4 * 0x1p-11L},
    {HVD_BFLOAT16, 2, 4 * 0x1p-8L},
    {HVD_FLOAT32, 4, 64 * 0x1p-24L},
    {HVD_FLOAT64, 8, 64 * 0x1p-53L},
};

static void check_fused(int size, size_t number)
{
    enum hvd_type type = types[number].type;
    size_t total = sum(counts, TENSORS), element = types[number].bytes;
    char *data AUTO_FREE = mem_array((size_t)size, total * element);
    long double *serial AUTO_FREE = mem_array((size_t)size * total, sizeof *serial);
    char *input AUTO_FREE = mem_array((size_t)size, total * element);
    for (size_t i = 0; i < (size_t)size * total; i++)
        put(type, input, i, value_of((int)(i / total), i % total));
    memcpy(data, input, (size_t)size * total * element);
    run_all(size, type, data, total * element, counts, TENSORS);
    for (size_t t = 0, first = 0; t < TENSORS; first += counts[t++]) {
        for (int rank = 0; rank < size; rank++)
            for (size_t i = 0; i < counts[t]; i++)
                serial[(size_t)rank * counts[t] + i] =
                    get(type, input, (size_t)rank * total + first + i);
        adasum_serial(serial, counts[t], size);
        for (size_t i = 0; i < counts[t]; i++)
            assert_true(fabsl(get(type, data, first + i) - serial[i]) <=
                        size * types[number].tolerance);
    }
}

static void test_each_tensor_is_a_vector_of_its_own(void **state)
{
    (void)state;
    for (int size = 1; size <= RANKS_MAX; size++)
        for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
            check_fused(size, i);
}

static void test_orthogonal_vectors_are_added(void **state)
{
    (void)state;
    const size_t length = RANKS_MAX;
    for (int size = 1; size <= RANKS_MAX; size++) {
        float data[RANKS_MAX * RANKS_MAX] = {0};
        for (int rank = 0; rank < size; rank++)
            data[rank * RANKS_MAX + rank] = (float)(rank + 1);
        run_all(size, HVD_FLOAT32, data, sizeof(float) * RANKS_MAX, &length, 1);
        for (int i = 0; i < RANKS_MAX; i++)
            assert_true(data[i] == (float)(i < size ? i + 1 : 0));
    }
}

static void test_equal_vectors_stay(void **state)
{
    (void)state;
    const size_t length = 5;
    for (int size = 1; size <= RANKS_MAX; size++) {
        double data[RANKS_MAX * 5];
        for (int i = 0; i < size * 5; i++)
            data[i] = i % 5 - 2;
        run_all(size, HVD_FLOAT64, data, sizeof(double) * 5, &length, 1);
        for (int i = 0; i < 5; i++)
            assert_true(data[i] == i - 2);
    }
}

/* A rank that has joined gives zeros. */
static void test_zeros_change_nothing(void **state)
{
    (void)state;
    const size_t length = 3;
    for (int giver = 0; giver < 6; giver++) {
        double data[6 * 3] = {0};
        for (int i = 0; i < 3; i++)
            data[giver * 3 + i] = i + 0.25;
        run_all(6, HVD_FLOAT64, data, sizeof(double) * 3, &length, 1);
        for (int i = 0; i < 3; i++)
            assert_true(data[i] == i + 0.25);
    }
}

static void test_failures(void **state)
{
    (void)state;
    const size_t length = 3, none = 0;
    double data[3] = {1, 2, 3};
    struct error err = ERROR_INIT;
    struct adasum_job job = {&failing, NULL, 0, 2, HVD_FLOAT64};
    assert_int_equal(adasum_run(&job, data, &length, 1, &err), HVD_ERR_PEER_LOST);
    assert_string_equal(err.text, "rank 1 is gone");
    assert_int_equal(adasum_run(&job, data, &none, 1, &err), HVD_OK);
    job.size = 3;
    assert_int_equal(adasum_run(&job, data, &length, 1, &err), HVD_ERR_PEER_LOST);
    job.type = HVD_INT64;
    assert_int_equal(adasum_run(&job, data, &length, 1, &err), HVD_ERR_UNSUPPORTED);
    assert_false(adasum_has_type(HVD_INT32));
    assert_true(adasum_has_type(HVD_FLOAT32));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_tensor_is_a_vector_of_its_own),
        cmocka_unit_test(test_orthogonal_vectors_are_added),
        cmocka_unit_test(test_equal_vectors_stay),
        cmocka_unit_test(test_zeros_change_nothing),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
