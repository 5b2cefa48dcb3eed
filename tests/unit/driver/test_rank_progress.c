/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <jansson.h>

#include "base/mem.h"
#include "driver/job/job.h"
#include "driver/job/part.h"
#include "driver/tell/json_text.h"
#include "driver/tell/rank_progress.h"

#define SEATS 4

/* Four ranks on four seats, in epoch 1. */
static int setup(void **state)
{
    struct job *job = mem_alloc(sizeof(*job));
    job->epoch = 1;
    job->state = JOB_RUNNING;
    rank_table_init(&job->ranks, SEATS);
    for (int seat = 0; seat < SEATS; seat++) {
        struct rank_record *record = &job->ranks.records[seat];
        record->rank = seat;
        record->epoch = record->joined = 1;
    }
    part_open(job, PART_progress_list, &progress_list_part, NULL);
    *state = job;
    return 0;
}

static int teardown(void **state)
{
    struct job *job = *state;
    part_close(job, PART_progress_list, &progress_list_part);
    rank_table_destroy(&job->ranks);
    free(job);
    return 0;
}

/* percent -1: the report has none. */
static void report(struct job *job, int seat, uint32_t epoch, double percent)
{
    struct progress progress = PROGRESS_INIT;
    progress.percent = percent;
    progress_add_metric(&progress, "loss", "0.5");
    progress_add_metric(&progress, "grad", "nan");
    progress_list_take(job_part(job, progress_list), seat, epoch, 1, &progress);
}

static void test_of_the_job(void **state)
{
    struct job *job = *state;
    assert_int_equal(rank_progress_of_job(job), -1);
    assert_null(progress_json_job(job));
    report(job, 3, 1, -1); /* better than nothing */
    assert_int_equal(rank_progress_of_job(job), 3);
    report(job, 2, 1, 50);
    assert_int_equal(rank_progress_of_job(job), 2);
    report(job, 1, 1, 40);
    assert_int_equal(rank_progress_of_job(job), 1); /* the lowest */
    report(job, 0, 1, -1);
    assert_int_equal(rank_progress_of_job(job), 1);
    report(job, 0, 1, 90);
    assert_int_equal(rank_progress_of_job(job), 0); /* rank 0, whatever the others say */
}

static void test_another_worker_on_the_seat(void **state)
{
    struct job *job = *state;
    report(job, 1, 1, 40);
    report(job, 1, 1, 41);
    assert_int_equal(rank_progress(job, 1)->reports, 2);
    job->ranks.records[1].epoch = 2;
    assert_null(rank_progress(job, 1)); /* it has said nothing yet */
    assert_int_equal(rank_progress_of_job(job), -1);
    report(job, 1, 2, 3);
    assert_int_equal(rank_progress(job, 1)->reports, 1);
    job->epoch = 2; /* the worker did not join it */
    assert_int_equal(rank_progress_of_job(job), -1);
    assert_non_null(rank_progress(job, 1));
    assert_null(rank_progress(job, 0));
    assert_null(rank_progress(job, SEATS));
    assert_null(rank_progress(job, -1));
}

static void test_seconds(void **state)
{
    (void)state;
    struct progress_report told = {.progress = PROGRESS_INIT, .when_ns = 1000000000};
    assert_true(progress_report_eta_s(&told, 5000000000) < 0);
    told.progress.eta_s = 10;
    double left = progress_report_eta_s(&told, 5000000000);
    assert_true(left > 5.99 && left < 6.01);
    assert_true(progress_report_eta_s(&told, 50000000000) <= 0);
    assert_true(progress_report_eta_s(&told, 50000000000) >= 0);
    told.progress.eta_s = 0;
    assert_true(progress_report_eta_s(&told, 5000000000) >= 0); /* it is about to end */
}

static void test_as_json(void **state)
{
    struct job *job = *state;
    report(job, 2, 1, 12.5);
    json_t *object = progress_json_job(job);
    assert_int_equal(json_integer_value(json_object_get(object, "rank")), 2);
    assert_non_null(json_object_get(object, "age_s"));
    assert_null(json_object_get(object, "eta_s"));
    assert_null(json_object_get(object, "text"));
    const json_t *metrics = json_object_get(object, "metrics");
    assert_true(json_is_real(json_object_get(metrics, "loss")));
    assert_string_equal(json_string_value(json_object_get(metrics, "grad")), "nan");
    json_decref(object);
    job->state = JOB_FLUSHING; /* it is over */
    object = progress_json_job(job);
    assert_null(json_object_get(object, "age_s"));
    json_decref(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_of_the_job, setup, teardown),
        cmocka_unit_test_setup_teardown(test_another_worker_on_the_seat, setup, teardown),
        cmocka_unit_test(test_seconds),
        cmocka_unit_test_setup_teardown(test_as_json, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
