/* SPDX-License-Identifier: Apache-2.0 */
/* The history of a job: when it asks, and what of the ranks it adds up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/tell/rank_progress.h"
#include "features/metrics/metrics_driver.h"
#include "features/usage/sampled_fixture.h"

static void over(void *context)
{
    loop_stop(context);
}

static void run_for(struct loop *loop, int64_t ms)
{
    struct loop_timer *timer = loop_timer_create(loop, over, loop);
    loop_timer_set(timer, ms);
    run_loop(loop);
    loop_timer_destroy(timer);
}

static void until_it_asks(const struct sampled *sampled)
{
    int64_t limit = unit_limit_ms(RUN_LIMIT_MS);
    while (!ask_is_open(&sampled->f->job, &topic_usage) && !unit_is_over(limit))
        run_for(sampled->f->job.loop, 10);
    assert_true(ask_is_open(&sampled->f->job, &topic_usage));
}

/* The points, without their times, which are those of the machine. */
static json_t *points_of(const struct job_history *history, uint64_t since, int next)
{
    json_t *object = job_history_json(history, since);
    json_t *points = json_incref(json_object_get(object, "points"));
    assert_int_equal(json_integer_value(json_object_get(object, "next")), next);
    for (size_t i = 0; i < json_array_size(points); i++)
        assert_int_equal(json_object_del(json_array_get(points, i), "time"), 0);
    json_decref(object);
    return points;
}

static void report(struct fixture *f, int seat, double percent)
{
    struct progress progress = PROGRESS_INIT;
    progress.percent = percent;
    f->job.ranks.records[seat].epoch = f->job.ranks.records[seat].joined = 1;
    progress_list_take(job_part(&f->job, progress_list), seat, 1, 6 * SECOND, &progress);
}

static struct job_history *begin_history(struct fixture *f)
{
    static char page[] = "page.html";
    f->settings.page_file = page;
    job_history_part.open(&f->job, NULL);
    f->settings.page_file = NULL;
    return job_part(&f->job, job_history);
}

static void test_sums(void **state)
{
    struct sampled *sampled = *state;
    struct fixture *f = sampled->f;
    f->job.state = JOB_RUNNING;
    part_open(&f->job, PART_progress_list, &progress_list_part, NULL);
    report(f, 0, 12.3456);
    agents_connect(&sampled->agents, 0);
    struct job_history *history = begin_history(f);
    until_it_asks(sampled);
    expect_json(points_of(history, 0, 0), "[]");
    sampled_answer(sampled, 1000000);
    /* two ranks of host a have answered; how many CPUs they use is not known yet */
    expect_json(points_of(history, 0, 1),
                "[{'ranks': 3, 'progress': 0.1235, 'resident_bytes': 8193}]");
    report(f, 0, 50);
    until_it_asks(sampled);
    sampled_answer(sampled, 1000000);
    expect_json(points_of(history, 1, 2),
                "[{'ranks': 3, 'progress': 0.5, 'cpus': 0.0, 'resident_bytes': 8193}]");
    expect_json(points_of(history, 2, 2), "[]");
    expect_json(points_of(history, 1000, 2), "[]");
    job_history_part.close(&f->job);
    part_close(&f->job, PART_progress_list, &progress_list_part);
}

/* Its end has the last progress, once. */
static void test_the_end(void **state)
{
    struct sampled *sampled = *state;
    struct fixture *f = sampled->f;
    part_open(&f->job, PART_progress_list, &progress_list_part, NULL);
    report(f, 0, 100);
    for (int rank = 0; rank < 3; rank++)
        exits(f, rank, false, 0, 7 * SECOND);
    struct job_history *history = begin_history(f);
    job_history_end(history);
    job_history_end(history);
    expect_json(points_of(history, 0, 1), "[{'ranks': 0, 'progress': 1.0}]");
    job_history_part.close(&f->job);
    part_close(&f->job, PART_progress_list, &progress_list_part);
}

/* Nothing runs, or the agents leave: nobody is asked. */
static void test_nothing_to_measure(void **state)
{
    struct sampled *sampled = *state;
    struct fixture *f = sampled->f;
    agents_connect(&sampled->agents, 0);
    f->job.state = JOB_CLOSING;
    struct job_history *history = begin_history(f);
    run_for(f->job.loop, 700); /* its first timer has fired */
    assert_int_equal(ask_age_ms(&f->job, &topic_usage), -1);
    job_history_part.close(&f->job);
    f->job.state = JOB_RUNNING;
    for (int rank = 0; rank < 3; rank++)
        exits(f, rank, false, 0, 7 * SECOND);
    history = begin_history(f);
    run_for(f->job.loop, 700); /* its first timer has fired */
    assert_int_equal(ask_age_ms(&f->job, &topic_usage), -1);
    expect_json(points_of(history, 0, 0), "[]");
    job_history_part.close(&f->job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_sums, sampled_begin, sampled_end),
        cmocka_unit_test_setup_teardown(test_the_end, sampled_begin, sampled_end),
        cmocka_unit_test_setup_teardown(test_nothing_to_measure, sampled_begin, sampled_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
