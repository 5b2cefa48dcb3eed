/* SPDX-License-Identifier: Apache-2.0 */
/* Operations with an engine that fails: which buffers are freed, and which must stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "loop/runner.h"

enum { LENGTH = 10 };

/* The engine of this test: calls fail from a number on, and what it was given is still written to
 * afterwards, as a network card would do. */
struct engine_comm {
    int calls, good_calls;
    void *last;
    size_t last_bytes;
};

static enum hvd_status answer(struct engine_comm *comm, void *data, size_t bytes, struct error *err)
{
    comm->last = data;
    comm->last_bytes = bytes;
    if (comm->calls++ < comm->good_calls)
        return HVD_OK;
    error_set(err, "gone");
    return HVD_ERR_PEER_LOST;
}

static enum hvd_status allreduce(struct engine_comm *comm, void *data, size_t count,
                                 enum hvd_type type, enum hvd_op op, struct error *err)
{
    (void)op;
    return answer(comm, data, count * hvd_type_bytes((int)type), err);
}

static enum hvd_status allgatherv(struct engine_comm *comm, const void *in, void *out,
                                  const size_t *bytes, struct error *err)
{
    (void)in;
    return answer(comm, out, bytes[0], err);
}

static const struct engine keeper = {
    .name = "keeper", .keeps_buffers = true, .allreduce = allreduce, .allgatherv = allgatherv};
static const struct engine other = {
    .name = "other", .allreduce = allreduce, .allgatherv = allgatherv};

static const int ranks[] = {0};
static int64_t length = LENGTH;

static enum hvd_status run_two(struct runner *runner, enum kind kind, struct submission *tokens)
{
    struct part parts[2];
    struct outcome outcomes[2] = {OUTCOME_INIT, OUTCOME_INIT};
    struct error err = ERROR_INIT;
    for (int i = 0; i < 2; i++)
        parts[i] = (struct part){.request = {.key = "tx",
                                             .kind = kind,
                                             .type = HVD_FLOAT32,
                                             .op = HVD_SUM,
                                             .prescale = 1,
                                             .postscale = 1,
                                             .dims = 1,
                                             .shape = &length},
                                 .token = &tokens[i]};
    enum hvd_status status = operation_run(runner, parts, 2, outcomes, &err);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(outcomes[i].status, status);
        free(outcomes[i].data);
        free(outcomes[i].splits);
    }
    return status;
}

static enum hvd_status run(struct runner *runner, enum kind kind, void *data)
{
    struct submission tokens[2] = {{.input = data, .output = data},
                                   {.input = data, .output = data}};
    return run_two(runner, kind, tokens);
}

/* Tensors side by side are reduced where they are. */
static void test_what_is_not_copied(void **state)
{
    (void)state;
    float data[3 * LENGTH] = {0};
    struct engine_comm comm = {.good_calls = 9};
    struct runner runner = {.engine = &other, .comm = &comm, .size = 1, .ranks = ranks};
    struct submission flat[2] = {{.input = data, .output = data},
                                 {.input = data + LENGTH, .output = data + LENGTH}};
    assert_int_equal(run_two(&runner, KIND_ALLREDUCE, flat), HVD_OK);
    assert_ptr_equal(comm.last, data);
    assert_int_equal(comm.last_bytes, 2 * LENGTH * sizeof *data);
    assert_null(runner.buffer);
    struct submission apart[2] = {flat[0],
                                  {.input = data + 2 * LENGTH, .output = data + 2 * LENGTH}};
    assert_int_equal(run_two(&runner, KIND_ALLREDUCE, apart), HVD_OK);
    assert_ptr_equal(comm.last, runner.buffer);
    struct submission elsewhere[2] = {flat[0],
                                      {.input = data + 2 * LENGTH, .output = data + LENGTH}};
    assert_int_equal(run_two(&runner, KIND_ALLREDUCE, elsewhere), HVD_OK);
    assert_ptr_equal(comm.last, runner.buffer);
    runner_destroy(&runner);
}

static void test_the_fusion_buffer_stays(void **state)
{
    (void)state;
    float data[LENGTH] = {0};
    struct engine_comm comm = {0};
    struct runner runner = {.engine = &keeper, .comm = &comm, .size = 1, .ranks = ranks};
    assert_int_equal(run(&runner, KIND_ALLREDUCE, data), HVD_ERR_PEER_LOST);
    void *buffer = runner.buffer;
    assert_ptr_equal(comm.last, buffer);
    runner_destroy(&runner);
    assert_ptr_equal(runner.buffer, buffer);
    memset(comm.last, 1, comm.last_bytes);
    free(buffer); /* here no network uses it */
}

/* The rows that an allgather exchanges, and its result. The sanitizers would see a write to memory
 * that was freed. */
static void test_the_buffers_of_an_allgather_stay(void **state)
{
    (void)state;
    float data[LENGTH] = {0};
    struct engine_comm comm = {0};
    struct runner runner = {.engine = &keeper, .comm = &comm, .size = 1, .ranks = ranks};
    assert_int_equal(run(&runner, KIND_ALLGATHER, data), HVD_ERR_PEER_LOST);
    memset(comm.last, 1, comm.last_bytes);
    free(comm.last);
    runner_destroy(&runner);
}

static void test_other_engines_do_not_leak(void **state)
{
    (void)state;
    float data[LENGTH] = {0};
    struct engine_comm comm = {.good_calls = 1};
    struct runner runner = {.engine = &other, .comm = &comm, .size = 1, .ranks = ranks};
    assert_int_equal(run(&runner, KIND_ALLREDUCE, data), HVD_OK);
    assert_non_null(runner.buffer);
    assert_int_equal(run(&runner, KIND_ALLREDUCE, data), HVD_ERR_PEER_LOST);
    runner_destroy(&runner);
    assert_null(runner.buffer);
    comm = (struct engine_comm){0};
    assert_int_equal(run(&runner, KIND_ALLGATHER, data), HVD_ERR_PEER_LOST);
    comm = (struct engine_comm){.good_calls = 2};
    assert_int_equal(run(&runner, KIND_ALLGATHER, data), HVD_OK);
    runner_destroy(&runner);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_not_copied),
        cmocka_unit_test(test_the_fusion_buffer_stays),
        cmocka_unit_test(test_the_buffers_of_an_allgather_stay),
        cmocka_unit_test(test_other_engines_do_not_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
