/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions of this room in a job of one rank, and wrong calls of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "include/hvd.h"
#include "unit.h"

static int setup(void **state)
{
    (void)state;
    return hvd_init(NULL);
}

static int teardown(void **state)
{
    (void)state;
    return hvd_shutdown();
}

static void expect_error(int64_t status, int expected, const char *part)
{
    assert_int_equal(status, expected);
    if (strstr(hvd_error_text(), part) == NULL)
        fail_msg("the error is '%s', without '%s'", hvd_error_text(), part);
}

static void test_start_and_end(void **state)
{
    (void)state;
    assert_int_equal(hvd_shutdown(), HVD_OK); /* nothing to do */
    for (int i = 0; i < 5; i++) {
        assert_int_equal(hvd_init(NULL), HVD_OK);
        assert_int_equal(hvd_init(NULL), HVD_OK);
        assert_int_equal(hvd_size(), 1);
        assert_int_equal(hvd_shutdown(), HVD_OK);
        assert_false(hvd_is_initialized());
    }
}

static void test_before_the_start(void **state)
{
    (void)state;
    struct hvd_sampler *sampler = NULL;
    struct hvd_state *s = NULL;
    expect_error(hvd_sampler_create(10, false, 0, &sampler), HVD_ERR_NOT_INITIALIZED, "hvd_init");
    assert_null(sampler);
    expect_error(hvd_timeline_start("/tmp/x", false), HVD_ERR_NOT_INITIALIZED, "hvd_init");
    expect_error(hvd_timeline_stop(), HVD_ERR_NOT_INITIALIZED, "hvd_init");
    assert_int_equal(hvd_state_create(&s), HVD_OK); /* only memory */
    expect_error(hvd_state_commit(s), HVD_ERR_NOT_INITIALIZED, "hvd_init");
    expect_error(hvd_state_sync(s), HVD_ERR_NOT_INITIALIZED, "hvd_init");
    hvd_state_destroy(s);
}

/* A forked child gets an error from each, and does not hang. */
static void test_a_forked_child(void **state)
{
    (void)state;
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bool right = hvd_init(NULL) == HVD_ERR_NOT_INITIALIZED &&
                     hvd_timeline_start("/tmp/x", false) == HVD_ERR_NOT_INITIALIZED &&
                     hvd_timeline_stop() == HVD_ERR_NOT_INITIALIZED && hvd_shutdown() == HVD_OK;
        _exit(right ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void test_timeline(void **state)
{
    (void)state;
    char folder[] = "/tmp/hvd-api-XXXXXX", path[64];
    double one = 1;
    struct hvd_tensor tensor = HVD_TENSOR_INIT;
    tensor.name = "grad.17";
    tensor.type = HVD_FLOAT64;
    tensor.input = tensor.output = &one;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/timeline.json", folder);
    expect_error(hvd_timeline_start(NULL, false), HVD_ERR_ARGUMENT, "path");
    expect_error(hvd_timeline_start("", false), HVD_ERR_ARGUMENT, "path");
    expect_error(hvd_timeline_start("/nonexistent/x", false), HVD_ERR_ARGUMENT, "/nonexistent/x");
    assert_int_equal(hvd_timeline_start(path, true), HVD_OK);
    assert_int_equal(hvd_allreduce(&tensor, NULL), HVD_OK);
    assert_int_equal(hvd_timeline_stop(), HVD_OK);
    assert_int_equal(hvd_timeline_stop(), HVD_OK);
    json_t *list = json_load_file(path, 0, NULL);
    bool found = false;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_object_get(json_array_get(list, i), "name"));
        found = found || (name != NULL && strcmp(name, "ALLREDUCE") == 0);
    }
    assert_true(found);
    json_decref(list);
    unlink(path);
    rmdir(folder);
}

static void test_sampler(void **state)
{
    (void)state;
    struct hvd_sampler *sampler = NULL;
    expect_error(hvd_sampler_create(10, false, 0, NULL), HVD_ERR_ARGUMENT, "sampler");
    expect_error(hvd_sampler_create(-1, false, 0, &sampler), HVD_ERR_ARGUMENT, "-1 examples");
    assert_int_equal(hvd_sampler_create(10, false, 0, &sampler), HVD_OK);
    assert_int_equal(hvd_sampler_count(sampler), 10);
    assert_int_equal(hvd_sampler_at(sampler, 3), 3);
    assert_int_equal(hvd_sampler_at(sampler, 10), -1);
    hvd_sampler_record(sampler, 4);
    hvd_sampler_set_epoch(sampler, 2);
    assert_int_equal(hvd_sampler_epoch(sampler), 2);
    assert_int_equal(hvd_sampler_count(sampler), 10);
    hvd_sampler_destroy(sampler);
    hvd_sampler_destroy(NULL);
    hvd_sampler_record(NULL, 1);
    hvd_sampler_set_epoch(NULL, 1);
    assert_int_equal(hvd_sampler_count(NULL), 0);
    assert_int_equal(hvd_sampler_at(NULL, 0), -1);
    assert_int_equal(hvd_sampler_epoch(NULL), -1);
}

static void test_state(void **state)
{
    (void)state;
    struct hvd_state *s = NULL;
    struct hvd_sampler *sampler = NULL;
    int number = 1;
    assert_int_equal(hvd_sampler_create(10, true, 3, &sampler), HVD_OK);
    assert_int_equal(hvd_state_create(&s), HVD_OK);
    assert_int_equal(hvd_state_add(s, "number", &number, sizeof(number)), HVD_OK);
    assert_int_equal(hvd_state_add_sampler(s, "sampler", sampler), HVD_OK);
    assert_int_equal(hvd_state_sync(s), HVD_OK);
    hvd_sampler_record(sampler, 4);
    number = 2;
    assert_int_equal(hvd_state_commit(s), HVD_OK);
    hvd_sampler_record(sampler, 3);
    number = 3;
    assert_int_equal(hvd_state_restore(s), HVD_OK);
    assert_int_equal(number, 2);
    assert_int_equal(hvd_sampler_count(sampler), 6); /* what is left behind the commit */
    assert_int_equal(hvd_state_check(s), HVD_OK);
    hvd_state_destroy(s);
    hvd_sampler_destroy(sampler);
}

static void test_bad_states(void **state)
{
    (void)state;
    struct hvd_state *s = NULL;
    int number = 0;
    expect_error(hvd_state_create(NULL), HVD_ERR_ARGUMENT, "state");
    expect_error(hvd_state_commit(NULL), HVD_ERR_ARGUMENT, "state");
    expect_error(hvd_state_check(NULL), HVD_ERR_ARGUMENT, "state");
    expect_error(hvd_state_restore(NULL), HVD_ERR_ARGUMENT, "state");
    expect_error(hvd_state_sync(NULL), HVD_ERR_ARGUMENT, "state");
    assert_int_equal(hvd_state_create(&s), HVD_OK);
    expect_error(hvd_state_add(NULL, "a", &number, 4), HVD_ERR_ARGUMENT, "state");
    expect_error(hvd_state_add(s, NULL, &number, 4), HVD_ERR_ARGUMENT, "name");
    expect_error(hvd_state_add(s, "", &number, 4), HVD_ERR_ARGUMENT, "1 to 255");
    expect_error(hvd_state_add(s, "a", NULL, 4), HVD_ERR_ARGUMENT, "memory");
    expect_error(hvd_state_add_sampler(s, "a", NULL), HVD_ERR_ARGUMENT, "sampler");
    expect_error(hvd_elastic_run(s, NULL, NULL), HVD_ERR_ARGUMENT, "function");
    hvd_state_destroy(s);
    hvd_state_destroy(NULL);
}

static int count_calls(struct hvd_state *state, void *context)
{
    int *calls = context;
    assert_non_null(state);
    return ++*calls == 1 ? HVD_ERR_PEER_LOST : HVD_OK;
}

/* The launcher is not elastic: the error is for the program. */
static void test_run_without_a_launcher(void **state)
{
    (void)state;
    struct hvd_state *s = NULL;
    int calls = 0;
    assert_int_equal(hvd_state_create(&s), HVD_OK);
    assert_int_equal(hvd_elastic_run(s, count_calls, &calls), HVD_ERR_PEER_LOST);
    assert_int_equal(hvd_elastic_run(s, count_calls, &calls), HVD_OK);
    assert_int_equal(calls, 2);
    hvd_state_destroy(s);
}

static void test_deadline(void **state)
{
    (void)state;
    char path[] = "/tmp/hvd-api-XXXXXX", reason[64] = "x";
    unsetenv("HVDRUN_DEADLINE_FILE");
    assert_int_equal(hvd_deadline(reason, sizeof(reason)), -1);
    assert_string_equal(reason, "");
    int fd = mkstemp(path);
    setenv("HVDRUN_DEADLINE_FILE", path, 1);
    expect_error(hvd_deadline(NULL, 0), HVD_ERR_ARGUMENT, path);
    dprintf(fd, "1700000500 spot node\n");
    unit_clock_stop(0, INT64_C(1700000000000000000));
    assert_int_equal(hvd_deadline(reason, sizeof(reason)), 500 * 1000);
    assert_string_equal(reason, "spot node");
    assert_int_equal(hvd_deadline(reason, 5), 500 * 1000);
    unit_clock_run();
    assert_string_equal(reason, "spot");
    close(fd);
    unlink(path);
    assert_int_equal(hvd_deadline(NULL, 0), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_start_and_end),
        cmocka_unit_test(test_before_the_start),
        cmocka_unit_test_setup_teardown(test_a_forked_child, setup, teardown),
        cmocka_unit_test_setup_teardown(test_timeline, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sampler, setup, teardown),
        cmocka_unit_test_setup_teardown(test_state, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_states, setup, teardown),
        cmocka_unit_test_setup_teardown(test_run_without_a_launcher, setup, teardown),
        cmocka_unit_test(test_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
