/* SPDX-License-Identifier: Apache-2.0 */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "loop/handles.h"

static void complete(struct handles *handles, struct submission *one, enum hvd_status status,
                     const char *text)
{
    struct outcome outcome = OUTCOME_INIT;
    outcome.status = status;
    outcome.text = text;
    submission_complete(handles, one, &outcome);
}

/* The first error in the order of the tensors counts, not in that of time. */
static void test_the_first_error_of_a_group(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    hvd_handle number;
    struct handles *handles = handles_create(0, NULL);
    struct submission *all = handle_create(handles, 3, NULL, NULL, true, &number);
    assert_int_equal(handle_wait(handles, number, 0, (struct results){0}, NULL, &err),
                     HVD_ERR_TIMEOUT);
    complete(handles, &all[2], HVD_ERR_ENGINE, "third");
    complete(handles, &all[0], HVD_OK, "");
    assert_int_equal(handle_poll(handles, number, &err), HVD_IN_PROGRESS);
    complete(handles, &all[1], HVD_ERR_MISMATCH, "second");
    assert_int_equal(handle_poll(handles, number, &err), HVD_ERR_MISMATCH);
    assert_string_equal(err.text, "second");
    assert_int_equal(handles_completed(handles), 3);
    assert_int_equal(handle_wait(handles, number, -1, (struct results){0}, NULL, &err),
                     HVD_ERR_MISMATCH);
    assert_int_equal(handle_poll(handles, number, &err), HVD_ERR_UNKNOWN_HANDLE);
    handles_destroy(handles);
}

/* The parts of an operation may belong to several handles; a rank that has joined has no part. */
static void test_several_at_once(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    hvd_handle first, second;
    struct handles *handles = handles_create(0, NULL);
    struct submission *two = handle_create(handles, 2, NULL, NULL, true, &first);
    struct submission *one = handle_create(handles, 1, NULL, NULL, true, &second);
    const struct part parts[] = {{.token = &two[1]}, {.token = NULL}, {.token = one}};
    struct outcome outcomes[] = {OUTCOME_INIT, OUTCOME_INIT, OUTCOME_INIT};
    outcomes[2].status = HVD_ERR_ENGINE;
    outcomes[2].text = "broken";
    submissions_complete(handles, parts, 3, outcomes);
    assert_int_equal(handle_poll(handles, first, &err), HVD_IN_PROGRESS);
    assert_int_equal(handle_poll(handles, second, &err), HVD_ERR_ENGINE);
    assert_string_equal(err.text, "broken");
    complete(handles, &two[0], HVD_OK, "");
    assert_int_equal(handle_poll(handles, first, &err), HVD_OK);
    assert_int_equal(handles_completed(handles), 3);
    handles_destroy(handles);
}

static void test_numbers_do_not_come_again(void **state)
{
    (void)state;
    hvd_handle first, second, third;
    struct error err = ERROR_INIT;
    struct handles *handles = handles_create(0, NULL);
    complete(handles, handle_create(handles, 1, NULL, NULL, true, &first), HVD_OK, "");
    assert_int_equal(handle_wait(handles, first, -1, (struct results){0}, NULL, &err), HVD_OK);
    complete(handles, handle_create(handles, 1, NULL, NULL, true, &second), HVD_OK, "");
    assert_true(first != second && first > 0 && second > 0);
    uint32_t generation = handles_destroy(handles);
    handles = handles_create(generation, NULL);
    complete(handles, handle_create(handles, 1, NULL, NULL, true, &third), HVD_OK, "");
    assert_true(third != second && third != first);
    assert_int_equal(handle_poll(handles, second, &err), HVD_ERR_UNKNOWN_HANDLE);
    assert_int_equal(handle_poll(handles, -1, &err), HVD_ERR_UNKNOWN_HANDLE);
    handles_destroy(handles);
}

/* A GPU, which takes a while to begin, and then to end. */
struct device {
    struct handles *handles;
    struct submission *submission;
    int end_ms;
};

static void *run_gpu(void *argument)
{
    struct device *gpu = argument;
    poll(NULL, 0, 5);
    submission_launched(gpu->handles, gpu->submission);
    poll(NULL, 0, gpu->end_ms);
    complete(gpu->handles, gpu->submission, HVD_OK, "");
    return NULL;
}

/* A thread looks at first, and sleeps if that takes too long. */
static void test_a_wait_for_what_was_launched(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct handles *handles = handles_create(0, NULL);
    for (int end_ms = 0; end_ms <= 60; end_ms += 30) {
        hvd_handle number;
        pthread_t thread;
        struct device gpu = {handles, handle_create(handles, 1, NULL, NULL, true, &number), end_ms};
        assert_int_equal(pthread_create(&thread, NULL, run_gpu, &gpu), 0);
        assert_int_equal(handle_wait(handles, number, -1, (struct results){0}, NULL, &err), HVD_OK);
        pthread_join(thread, NULL);
    }
    handles_destroy(handles);
}

static void test_a_wait_for_what_was_launched_has_a_limit(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    hvd_handle number;
    struct handles *handles = handles_create(0, NULL);
    struct submission *one = handle_create(handles, 1, NULL, NULL, true, &number);
    submission_launched(handles, one);
    for (int limit_ms = 0; limit_ms <= 60; limit_ms += 5)
        assert_int_equal(handle_wait(handles, number, limit_ms, (struct results){0}, NULL, &err),
                         HVD_ERR_TIMEOUT);
    complete(handles, one, HVD_ERR_ENGINE, "broken");
    assert_int_equal(handle_wait(handles, number, 0, (struct results){0}, NULL, &err),
                     HVD_ERR_ENGINE);
    handles_destroy(handles);
}

static void test_a_result_has_the_size_that_the_program_knows(void **state)
{
    (void)state;
    hvd_handle number;
    struct error err = ERROR_INIT;
    struct {
        struct hvd_result result;
        uint64_t after;
    } old = {.after = 77};
    struct outcome outcome = OUTCOME_INIT;
    struct handles *handles = handles_create(0, NULL);
    struct submission *one = handle_create(handles, 1, NULL, NULL, true, &number);
    outcome.data = mem_alloc(8);
    outcome.rows = 5;
    submission_complete(handles, one, &outcome);
    old.result = (struct hvd_result)HVD_RESULT_INIT;
    old.result.size = offsetof(struct hvd_result, splits); /* of an older version */
    assert_int_equal(handle_wait(handles, number, -1, (struct results){&old.result, 1}, NULL, &err),
                     HVD_OK);
    assert_int_equal(old.result.rows, 5);
    assert_int_equal(old.result.last_joined, -1);
    assert_true(old.after == 77);
    free(old.result.data);
    handles_destroy(handles);
}

/* Each tensor of a group has a result of its own; what the caller does not take is freed. */
static void test_the_results_of_a_group(void **state)
{
    (void)state;
    enum { COUNT = 3 };
    hvd_handle number;
    struct error err = ERROR_INIT;
    struct hvd_result results[COUNT - 1] = {HVD_RESULT_INIT, HVD_RESULT_INIT};
    struct handles *handles = handles_create(0, NULL);
    struct submission *all = handle_create(handles, COUNT, NULL, NULL, true, &number);
    for (int i = COUNT - 1; i >= 0; i--) {
        struct outcome outcome = OUTCOME_INIT;
        outcome.data = mem_alloc(8);
        outcome.rows = 10 + i;
        submission_complete(handles, &all[i], &outcome);
    }
    assert_int_equal(
        handle_wait(handles, number, -1, (struct results){results, COUNT - 1}, NULL, &err), HVD_OK);
    for (int i = 0; i < COUNT - 1; i++) {
        assert_int_equal(results[i].rows, 10 + i);
        assert_non_null(results[i].data);
        free(results[i].data);
    }
    handles_destroy(handles);
}

static void count_call(void *context, hvd_handle handle, int status)
{
    (void)handle;
    *(int *)context += status == HVD_ERR_SHUT_DOWN ? 1 : 100;
}

static void test_callbacks_run_before_the_end(void **state)
{
    (void)state;
    enum { CALLS = 50 };
    int calls = 0;
    hvd_handle number;
    struct handles *handles = handles_create(0, NULL);
    for (int i = 0; i < CALLS; i++)
        complete(handles, handle_create(handles, 1, count_call, &calls, false, &number),
                 HVD_ERR_SHUT_DOWN, "over");
    handle_create(handles, 1, count_call, &calls, false, &number);
    handle_discard(handles, number); /* its callback does not run */
    handles_destroy(handles);
    assert_int_equal(calls, CALLS);
}

/* The stacks of threads are larger than an address space. */
static void test_no_thread(void **state)
{
    (void)state;
    pthread_attr_t usual, large;
    struct error err = ERROR_INIT;
    pthread_getattr_default_np(&usual);
    pthread_attr_init(&large);
    assert_int_equal(pthread_attr_setstacksize(&large, (size_t)1 << 48), 0);
    assert_int_equal(pthread_setattr_default_np(&large), 0);
    struct handles *handles = handles_create(0, &err);
    pthread_setattr_default_np(&usual);
    pthread_attr_destroy(&large);
    pthread_attr_destroy(&usual);
    assert_null(handles);
    assert_non_null(strstr(err.text, "cannot start the thread for callbacks: "));
    assert_int_equal(handles_destroy(handles), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_error_of_a_group),
        cmocka_unit_test(test_several_at_once),
        cmocka_unit_test(test_numbers_do_not_come_again),
        cmocka_unit_test(test_a_wait_for_what_was_launched),
        cmocka_unit_test(test_a_wait_for_what_was_launched_has_a_limit),
        cmocka_unit_test(test_a_result_has_the_size_that_the_program_knows),
        cmocka_unit_test(test_the_results_of_a_group),
        cmocka_unit_test(test_callbacks_run_before_the_end),
        cmocka_unit_test(test_no_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
