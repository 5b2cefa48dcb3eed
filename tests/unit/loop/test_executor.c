/* SPDX-License-Identifier: Apache-2.0 */
/* On which lane an operation runs, and in which thread, with an engine that only counts. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "loop/executor.h"

enum { MIB = 1 << 20, CALLS_MAX = 10, OPERATIONS_MAX = 10 };

struct engine_comm {
    pthread_mutex_t *gate; /* a call waits for it */
    atomic_int count;
    int good_calls;
    size_t bytes[CALLS_MAX];
    pthread_t threads[CALLS_MAX];
};

static enum hvd_status allreduce(struct engine_comm *comm, void *data, size_t count,
                                 enum hvd_type type, enum hvd_op op, struct error *err)
{
    (void)data, (void)op;
    int call = atomic_load(&comm->count);
    pthread_mutex_lock(comm->gate);
    pthread_mutex_unlock(comm->gate);
    comm->bytes[call] = count * hvd_type_bytes((int)type);
    comm->threads[call] = pthread_self();
    atomic_store(&comm->count, call + 1);
    if (call < comm->good_calls)
        return HVD_OK;
    error_set(err, "gone");
    return HVD_ERR_PEER_LOST;
}

static const struct engine engine = {.name = "counter", .allreduce = allreduce};
static const int ranks[] = {0};

struct scene {
    struct executor executor;
    struct set_owner owner;
    struct engine_comm comms[ENGINE_LANES_MAX];
    pthread_mutex_t gate;
    atomic_int failure; /* an enum hvd_status */
    float *data;
    hvd_handle numbers[OPERATIONS_MAX];
    int operations;
};

static enum hvd_status failure(void *context, struct error *err)
{
    enum hvd_status status = (enum hvd_status)atomic_load(&((struct scene *)context)->failure);
    if (status != HVD_OK)
        error_set(err, "the first reason");
    return status;
}

static void failed(void *context, enum hvd_status status, const char *text)
{
    struct scene *scene = context;
    struct error known = ERROR_INIT;
    assert_string_equal(text, "gone");
    for (int i = 0; i < scene->operations; i++) /* nobody knows it yet */
        assert_int_not_equal(handle_poll(scene->owner.handles, scene->numbers[i], &known), status);
    atomic_store(&scene->failure, (int)status);
}

static struct scene *begin(int lanes)
{
    struct scene *scene = mem_alloc(sizeof *scene);
    struct engine_comm *comms[ENGINE_LANES_MAX];
    struct error err = ERROR_INIT;
    pthread_mutex_init(&scene->gate, NULL);
    for (int i = 0; i < ENGINE_LANES_MAX; i++) {
        scene->comms[i].gate = &scene->gate;
        scene->comms[i].good_calls = CALLS_MAX;
        comms[i] = &scene->comms[i];
    }
    scene->data = mem_alloc((size_t)16 * MIB);
    scene->owner = (struct set_owner){
        .context = scene, .handles = handles_create(0, NULL), .failure = failure};
    executor_init(&scene->executor,
                  &(struct executor_setup){.owner = &scene->owner,
                                           .runner = {.engine = &engine, .size = 1, .ranks = ranks},
                                           .comms = comms,
                                           .lane_count = lanes,
                                           .failed = failed,
                                           .context = scene});
    assert_int_equal(executor_start(&scene->executor, 7, &err), 0);
    return scene;
}

static void end(struct scene *scene)
{
    struct error err = ERROR_INIT;
    executor_stop(&scene->executor);
    for (int i = 0; i < scene->operations; i++)
        handle_wait(scene->owner.handles, scene->numbers[i], 0, (struct results){0}, NULL, &err);
    executor_destroy(&scene->executor);
    handles_destroy(scene->owner.handles);
    pthread_mutex_destroy(&scene->gate);
    free(scene->data);
    free(scene);
}

/* Returns what executor_run() says. */
static bool run(struct scene *scene, size_t bytes)
{
    struct action action = {.kind = ACTION_RUN, .count = 1};
    struct submission *token = handle_create(scene->owner.handles, 1, NULL, NULL, true,
                                             &scene->numbers[scene->operations++]);
    token->input = token->output = scene->data;
    action.parts = mem_array(1, sizeof *action.parts);
    action.parts[0] = (struct part){.token = token};
    struct request *request = &action.parts[0].request;
    *request = (struct request){.key = mem_strdup("tx"),
                                .kind = KIND_ALLREDUCE,
                                .type = HVD_FLOAT32,
                                .op = HVD_SUM,
                                .prescale = 1,
                                .postscale = 1,
                                .dims = 1,
                                .shape = mem_array(1, sizeof *request->shape)};
    request->shape[0] = (int64_t)(bytes / sizeof(float));
    bool ran = executor_run(&scene->executor, &action);
    action_destroy(&action);
    return ran;
}

static enum hvd_status status_of(struct scene *scene, int operation, struct error *err)
{
    return handle_poll(scene->owner.handles, scene->numbers[operation], err);
}

static void expect_calls(const struct scene *scene, int lane, const size_t *mib, int count)
{
    const struct engine_comm *comm = &scene->comms[lane];
    assert_int_equal(atomic_load(&comm->count), count);
    for (int i = 0; i < count; i++)
        assert_int_equal(comm->bytes[i], mib[i] * MIB);
}

static void test_the_lanes_get_the_same_amount(void **state)
{
    (void)state;
    struct scene *scene = begin(2);
    const size_t sizes[] = {8, 2, 2, 5, 1}, first[] = {8, 1}, second[] = {2, 2, 5};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        assert_false(run(scene, sizes[i] * MIB));
    executor_drain(&scene->executor);
    expect_calls(scene, 0, first, 2);
    expect_calls(scene, 1, second, 3);
    for (int i = 0; i < 2; i++)
        assert_false(pthread_equal(scene->comms[i].threads[0], pthread_self()));
    assert_false(pthread_equal(scene->comms[0].threads[0], scene->comms[1].threads[0]));
    for (int i = 0; i < scene->operations; i++)
        assert_int_equal(status_of(scene, i, NULL), HVD_OK);
    end(scene);
}

static void test_a_small_one_runs_here_if_the_lane_is_idle(void **state)
{
    (void)state;
    struct scene *scene = begin(2);
    assert_true(run(scene, 4096));
    assert_true(pthread_equal(scene->comms[0].threads[0], pthread_self()));
    pthread_mutex_lock(&scene->gate);
    assert_false(run(scene, 2 * MIB));
    assert_false(run(scene, 4096)); /* behind it */
    assert_int_equal(status_of(scene, 1, NULL), HVD_IN_PROGRESS);
    assert_int_equal(status_of(scene, 2, NULL), HVD_IN_PROGRESS);
    pthread_mutex_unlock(&scene->gate);
    executor_drain(&scene->executor);
    assert_int_equal(status_of(scene, 2, NULL), HVD_OK);
    assert_int_equal(atomic_load(&scene->comms[0].count), 3);
    assert_int_equal(scene->comms[0].bytes[2], 4096);
    assert_int_equal(atomic_load(&scene->comms[1].count), 0);
    end(scene);
}

static void test_one_lane_needs_no_thread(void **state)
{
    (void)state;
    struct scene *scene = begin(1);
    assert_true(run(scene, 2 * MIB));
    assert_true(run(scene, 2 * MIB));
    assert_true(pthread_equal(scene->comms[0].threads[1], pthread_self()));
    assert_int_equal(atomic_load(&scene->comms[1].count), 0);
    end(scene);
}

static void test_what_follows_a_failure_does_not_run(void **state)
{
    (void)state;
    struct scene *scene = begin(2);
    struct error err = ERROR_INIT;
    scene->comms[1].good_calls = 0;
    run(scene, 2 * MIB);
    executor_drain(&scene->executor);
    run(scene, 3 * MIB); /* on the second lane */
    executor_drain(&scene->executor);
    run(scene, 2 * MIB);
    run(scene, 4096);
    executor_drain(&scene->executor);
    assert_int_equal(status_of(scene, 0, &err), HVD_OK);
    for (int i = 1; i < 4; i++) {
        assert_int_equal(status_of(scene, i, &err), HVD_ERR_PEER_LOST);
        assert_string_equal(err.text, "the first reason");
    }
    assert_int_equal(atomic_load(&scene->comms[0].count), 1);
    assert_int_equal(atomic_load(&scene->comms[1].count), 1);
    end(scene);
}

static void test_an_end_finishes_what_is_left(void **state)
{
    (void)state;
    struct scene *scene = begin(2);
    pthread_mutex_lock(&scene->gate);
    for (int i = 0; i < 4; i++)
        run(scene, 2 * MIB);
    pthread_mutex_unlock(&scene->gate);
    executor_stop(&scene->executor);
    for (int i = 0; i < 4; i++)
        assert_int_equal(status_of(scene, i, NULL), HVD_OK);
    assert_ptr_equal(executor_take_comm(&scene->executor, 1), &scene->comms[1]);
    assert_null(executor_take_comm(&scene->executor, 1));
    end(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_lanes_get_the_same_amount),
        cmocka_unit_test(test_a_small_one_runs_here_if_the_lane_is_idle),
        cmocka_unit_test(test_one_lane_needs_no_thread),
        cmocka_unit_test(test_what_follows_a_failure_does_not_run),
        cmocka_unit_test(test_an_end_finishes_what_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
